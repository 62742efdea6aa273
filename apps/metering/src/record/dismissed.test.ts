import type { Charge, UsageEvent } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import type { Prices } from '../price/prices';
import { ANY_PRICE, TENANT, usageEvent } from '../sample-events.fixture';
import { auditRejected, openRejected } from './rejected';

// Real: PostgreSQL.
const database = useMeteringDatabase();
/** No price is known. */
const NO_PRICE: Prices = { find: () => undefined, lookAgain: async () => false };
let consumer: UsageConsumer;
let unpriced: UsageConsumer;

beforeAll(() => {
  consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  unpriced = new UsageConsumer(database.dataSource, NO_PRICE);
});
beforeEach(() =>
  database.query(
    'TRUNCATE metering.usage_event, metering.usage_hour, metering.tenant_sum, metering.rejected_event, metering.outbox',
  ),
);

const DISMISSAL = 'UPDATE metering.rejected_event SET dismissed_at = now() WHERE event_id = $1';
const dismiss = ({ id }: Pick<UsageEvent, 'id'>) => database.query(DISMISSAL, [id]);
const recorded = async () => (await database.query<{ id: string }>('SELECT id FROM metering.usage_event')).length;
const charges = async () =>
  (await database.query<{ data: Charge }>(`SELECT data FROM metering.outbox WHERE topic = 'charges' ORDER BY id`)).map(
    (row) => row.data,
  );
const releaseOf = ({ id }: UsageEvent) => ({
  ...{ id, tenantId: TENANT, keyId: 'none', costNanos: '0', endedAt: expect.any(String) },
  ...{ late: true, dismissed: true },
});

describe('a dismissed event', () => {
  it('is answered by a release at each repeat, and is neither quarantined nor recorded again', async () => {
    const event = usageEvent({ costNanos: '7' });
    await consumer.consume([event]);
    expect(await charges()).toEqual([]);
    await dismiss(event);
    const good = usageEvent();
    expect(await consumer.consume([event, good, event])).toEqual({ recorded: 1, repeated: 2, rejected: 0 });
    expect(await consumer.consume([event])).toEqual({ recorded: 0, repeated: 1, rejected: 0 });
    expect((await charges()).filter(({ id }) => id === event.id)).toEqual([releaseOf(event), releaseOf(event)]);
    expect(await recorded()).toBe(1);
    expect(await openRejected(database.dataSource)).toBe(0);
    expect(await auditRejected(database.dataSource)).toEqual({ differences: [] });
    expect(await database.query('SELECT times::int FROM metering.rejected_event')).toEqual([{ times: 1 }]);
  });

  it('is not charged once its price is known, or if a repeat has other contents', async () => {
    const event = usageEvent();
    await unpriced.consume([event]);
    await dismiss(event);
    const others = [event, { ...event, costNanos: '7' }, { ...event, kind: 'video' as never }];
    for (const other of others)
      expect(await consumer.consume([other])).toEqual({ recorded: 0, repeated: 1, rejected: 0 });
    expect(await charges()).toEqual(others.map(() => releaseOf(event)));
    expect([await recorded(), await openRejected(database.dataSource)]).toEqual([0, 0]);
  });

  it('is recorded if it is opened again', async () => {
    const event = usageEvent();
    await unpriced.consume([event]);
    await dismiss(event);
    await consumer.consume([event]);
    await database.query('UPDATE metering.rejected_event SET dismissed_at = NULL');
    expect(await consumer.consume([event])).toMatchObject({ recorded: 1 });
    expect((await charges()).map(({ costNanos }) => costNanos)).toEqual(['0', event.costNanos]);
  });

  it('that was recorded is charged as recorded', async () => {
    const event = usageEvent();
    await unpriced.consume([event]);
    await consumer.consume([event]);
    await dismiss(event);
    for (const one of [event, { ...event, costNanos: '7' }]) await consumer.consume([one]);
    expect(await charges()).toHaveLength(3);
    for (const charge of await charges()) expect(charge).toMatchObject({ id: event.id, costNanos: event.costNanos });
  });

  it('that does not name its tenant stays closed, and its repeats are counted', async () => {
    const event = { ...usageEvent(), tenantId: 'nobody' };
    await consumer.consume([event]);
    await dismiss(event);
    expect(await consumer.consume([event])).toMatchObject({ rejected: 1 });
    expect([await charges(), await openRejected(database.dataSource)]).toEqual([[], 0]);
  });
});

it('a dismissal waits for a transaction that records the event, and then changes nothing', async () => {
  const event = usageEvent();
  await unpriced.consume([event]);
  const clients = [1, 2].map(() => new Client({ connectionString: database.url, application_name: 'test' }));
  const [locking, owner] = clients as [Client, Client];
  await Promise.all(clients.map((client) => client.connect()));
  try {
    // The recording waits at its last table, after its look at dismissals.
    await locking.query('BEGIN; LOCK TABLE metering.outbox IN EXCLUSIVE MODE');
    const recording = consumer.consume([event]);
    const waits = (query: string) =>
      eventually(async () =>
        expect(
          await database.query(
            `SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`,
            [query],
          ),
        ).toHaveLength(1),
      );
    await waits('%outbox%');
    const dismissal = owner.query(DISMISSAL, [event.id]);
    await waits('UPDATE metering.rejected_event%');
    await locking.query('COMMIT');
    expect(await recording).toMatchObject({ recorded: 1 });
    await dismissal;
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  await consumer.consume([event]);
  expect((await charges()).map(({ dismissed }) => dismissed)).toEqual([undefined, undefined]);
});
