import type { UsageEvent } from '@tollgate/contracts';
import { stampPrice, type ConfigSource, type TollgateConfig } from '@tollgate/runtime';
import { UsageConsumer } from '../consume/usage-consumer';
import { openMeteringDatabase } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { auditRejected, openRejected, waitingFor } from './rejected';
import { usageEvent } from '../sample-events.fixture';
import { PriceVersions } from './price-versions';

// Real: PostgreSQL. The configuration is a file that the test changes. It is read when the test or an event demands it.
const database = useMeteringDatabase();
beforeEach(() =>
  database.query(
    'TRUNCATE metering.usage_event, metering.usage_hour, metering.tenant_sum, metering.rejected_event, ' +
      'metering.outbox, metering.price_version',
  ),
);

// A replica saves prices in the background. The next test must not find them.
const opened: PriceVersions[] = [];
afterEach(() => Promise.all(opened.splice(0).map((prices) => prices.beforeApplicationShutdown())));

type Model = [id: string, kind: 'chat' | 'embedding', output: string];

const price = (output: string) => ({ input: '1', output, request: '0' });
const configOf = (...models: Model[]) =>
  ({ models: models.map(([id, kind, output]) => ({ id, kind, price: price(output) })) }) as TollgateConfig;

class Config {
  current: TollgateConfig;
  listeners: ((config: TollgateConfig) => void)[] = [];
  refreshes = 0;
  constructor(public file: TollgateConfig) {
    this.current = file;
  }
  onChange(listener: (config: TollgateConfig) => void): void {
    this.listeners.push(listener);
  }
  async refresh(): Promise<void> {
    this.refreshes++;
    if (this.file === this.current) return;
    this.current = this.file;
    for (const listener of this.listeners) listener(this.current);
  }
}

async function replica(config?: Config, { lookEveryMs = 0, dataSource = database.dataSource } = {}) {
  const prices = new PriceVersions(dataSource, config as unknown as ConfigSource, lookEveryMs);
  opened.push(prices);
  await prices.onModuleInit();
  return { prices, consumer: new UsageConsumer(dataSource, prices) };
}

const eventAt = (output: string, changes: Partial<UsageEvent> = {}) =>
  usageEvent({
    model: 'm',
    price: stampPrice(price(output), changes.kind === 'embedding' ? 'embedding' : 'chat'),
    ...changes,
  });
const kept = () =>
  database.query<{ model: string; kind: string; version: string }>(
    'SELECT model, kind, version FROM metering.price_version ORDER BY first_seen_at, model, kind',
  );

describe('prices that are or were in force', () => {
  it('rate events that arrive after a change of the price, even after a restart, and on each replica', async () => {
    const config = new Config(configOf(['m', 'chat', '2']));
    const { prices, consumer } = await replica(config);
    const late = [eventAt('2'), eventAt('2')];
    config.file = configOf(['m', 'chat', '3']);
    await config.refresh();
    expect(await consumer.consume([late[0], eventAt('3')])).toMatchObject({ recorded: 2, rejected: 0 });
    await prices.beforeApplicationShutdown();
    // It starts only now, so its file never had the first price.
    const other = await replica(new Config(configOf(['m', 'chat', '3'])));
    expect(await other.consumer.consume([late[1]])).toMatchObject({ recorded: 1, rejected: 0 });
    expect(await kept()).toHaveLength(2);
  });

  it('include those of a change while the process starts', async () => {
    const config = new Config(configOf(['m', 'chat', '2']));
    config.file = configOf(['m', 'chat', '3']);
    const { dataSource } = database;
    const changes = async (...query: Parameters<typeof dataSource.query>) => {
      if (query[0].includes('INSERT INTO price_version')) await config.refresh();
      return dataSource.query(...query);
    };
    const starting = Object.create(dataSource, { query: { value: changes } }) as typeof dataSource;
    const { consumer } = await replica(config, { dataSource: starting });
    expect(await consumer.consume([eventAt('2'), eventAt('3')])).toMatchObject({ recorded: 2, rejected: 0 });
    await opened[0]!.beforeApplicationShutdown();
    expect(await kept()).toHaveLength(2);
  });

  it('belong to one model and one kind', async () => {
    const { consumer } = await replica(
      new Config(configOf(['m', 'chat', '2'], ['dear', 'chat', '200'], ['e', 'embedding', '0'])),
    );
    const of = (events: UsageEvent[]) => consumer.consume(events);
    expect(
      await of([eventAt('2', { kind: 'completion' }), eventAt('0', { model: 'e', kind: 'embedding' })]),
    ).toMatchObject({
      recorded: 2,
    });
    expect(
      await of([
        // At the price of another model, or at a price that nobody has. Each agrees with its own cost.
        eventAt('2', { model: 'dear' }),
        eventAt('200'),
        eventAt('0.1'),
        eventAt('0', { kind: 'embedding' }),
        eventAt('2', { model: 'none' }),
      ]),
    ).toMatchObject({ recorded: 0, rejected: 5 });
    expect(await database.query('SELECT DISTINCT reason FROM metering.rejected_event')).toEqual([
      { reason: 'price.version: never in force for this model' },
    ]);
  });

  it('that a gateway read before metering are looked up in the file at once', async () => {
    const config = new Config(configOf(['m', 'chat', '2']));
    const { prices, consumer } = await replica(config);
    config.file = configOf(['m', 'chat', '3']);
    expect(await consumer.consume([eventAt('3')])).toMatchObject({ recorded: 1, rejected: 0 });
    await prices.beforeApplicationShutdown();
    expect(await kept()).toHaveLength(2);
  });

  it('that another replica read are found in the table', async () => {
    const stale = new Config(configOf(['m', 'chat', '2']));
    const { consumer } = await replica(stale);
    const other = await openMeteringDatabase(database.url);
    try {
      await replica(new Config(configOf(['m', 'chat', '3'])), { dataSource: other });
      expect(await consumer.consume([eventAt('3')])).toMatchObject({ recorded: 1 });
    } finally {
      await other.destroy();
    }
  });

  it('are looked up at most once in a while, however many events name an unknown one', async () => {
    const config = new Config(configOf(['m', 'chat', '2']));
    const { consumer } = await replica(config, { lookEveryMs: 3_600_000 });
    for (let i = 0; i < 20; i++) await consumer.consume([eventAt('9')]);
    expect(config.refreshes).toBe(1);
  });
});

describe('an event whose price is not known yet', () => {
  it('is quarantined once, counted up by repeats, and recorded once its price is known', async () => {
    const config = new Config(configOf(['m', 'chat', '2']));
    const { consumer } = await replica(config);
    const event = eventAt('3');
    for (let times = 1; times <= 3; times++) {
      expect(await consumer.consume([event])).toEqual({ recorded: 0, repeated: 0, rejected: 1 });
      expect(await database.query('SELECT event_id, times::int FROM metering.rejected_event')).toEqual([
        { event_id: event.id, times },
      ]);
    }
    expect(await openRejected(database.dataSource)).toBe(1);
    expect(await auditRejected(database.dataSource)).toMatchObject({
      differences: [{ check: 'no usage event is quarantined', tenantId: event.tenantId, ids: [event.id] }],
    });
    config.file = configOf(['m', 'chat', '3']);
    expect(await consumer.consume([event])).toEqual({ recorded: 1, repeated: 0, rejected: 0 });
    expect(await openRejected(database.dataSource)).toBe(0);
    expect(await auditRejected(database.dataSource)).toEqual({ differences: [] });
  });

  it('is returned for its price without a redelivery, and no other event is', async () => {
    const { consumer } = await replica(new Config(configOf(['m', 'chat', '2'])));
    const waiting = Array.from({ length: 1_100 }, () => eventAt('3'));
    await consumer.consume([...waiting, eventAt('4'), { ...eventAt('3'), costNanos: '1', kind: 'video' }]);
    const later = await replica(new Config(configOf(['m', 'chat', '3'])));
    const handed: unknown[] = [];
    for await (const part of waitingFor(database.dataSource, later.prices.all())) {
      handed.push(...part);
      await later.consumer.consume(part);
    }
    expect(new Set(handed.map((event) => (event as UsageEvent).id))).toEqual(new Set(waiting.map(({ id }) => id)));
    expect(await openRejected(database.dataSource)).toBe(2);
    for await (const again of waitingFor(database.dataSource, later.prices.all())) expect(again).toEqual([]);
  });
});

it('can be dismissed by a person', async () => {
  const { consumer } = await replica(new Config(configOf(['m', 'chat', '2'])));
  const forged = eventAt('2', { costNanos: String(2n ** 63n - 1n) });
  await consumer.consume([forged, 'text']);
  expect((await auditRejected(database.dataSource)).differences).toHaveLength(2);
  await database.query('UPDATE metering.rejected_event SET dismissed_at = now() WHERE event_id = $1', [forged.id]);
  expect((await auditRejected(database.dataSource)).differences).toMatchObject([{ tenantId: '', ids: [] }]);
});
