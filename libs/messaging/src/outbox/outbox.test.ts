import { UnavailableError } from '@tollgate/contracts';
import { openDataSource, transaction } from '@tollgate/postgres';
import { metrics } from '@tollgate/runtime';
import { elapsedMs, eventually, OUTBOX_TABLE_SQL, useTestDatabase } from '@tollgate/testing';
import type { DataSource, EntityManager } from 'typeorm';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../messages-store.fixture';
import { PostgresStore } from '../postgres/test-store.fixture';
import type { Messages } from '../messages';
import type { PostgresMessages } from '../postgres/postgres-messages';
import { enqueue } from './outbox';
import { OutboxRelay } from './outbox-relay';

const database = useTestDatabase();
const WAITING_FOR_ROWS = `
  SELECT FROM pg_stat_activity
  WHERE application_name = 'shop' AND datname = current_database() AND wait_event_type = 'Lock'
    AND query LIKE '%FOR UPDATE'`;
function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

describe('outbox', () => {
  let dataSource: DataSource;
  let store: PostgresStore;
  let messages: PostgresMessages;
  let received: Received;
  let relays: OutboxRelay[];

  beforeAll(async () => {
    await database.query('CREATE SCHEMA shop');
    dataSource = await openDataSource({ url: database.url, schema: 'shop', applicationName: 'shop', poolSize: 4 });
    await dataSource.query(OUTBOX_TABLE_SQL);
  });
  afterAll(() => dataSource.destroy());

  beforeEach(async () => {
    store = new PostgresStore(database);
    messages = store.open();
    received = new Received();
    messages.consume(TOPIC, SUITE_GROUP, received.handler);
    relays = [];
  });
  afterEach(async () => {
    await Promise.all(relays.map((relay) => relay.stop()));
    await messages.close();
    await store.close();
    await dataSource.query('TRUNCATE outbox, outbox_refused');
  });

  function relay(): OutboxRelay {
    const opened = new OutboxRelay(dataSource, messages, { name: 'shop' });
    relays.push(opened);
    return opened;
  }
  const rows = async () => (await dataSource.query('SELECT id FROM outbox')).length as number;
  const put = (tenant: string, versions: number[]) =>
    transaction(dataSource, (tx) =>
      enqueue(
        tx,
        TOPIC,
        versions.map((version) => balanceUpdate(tenant, version)),
      ),
    );

  it('publishes committed rows in order, at once after a wake, and keeps no row', async () => {
    await messages.start();
    const woken = relay();
    woken.start();
    // The first message of all also sets up its queue.
    await put('a', [1]);
    woken.wake();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    const took: number[] = [];
    let last = 1;
    for (let round = 0; round < 5; round++) {
      await put('a', [++last, ++last, ++last]);
      took.push(
        await elapsedMs(async () => {
          woken.wake();
          await eventually(() => received.assertAllInOrder(['a'], last), { everyMs: 2 });
        }),
      );
    }
    expect(took.sort((a, b) => a - b)[2]).toBeLessThan(900); // its own poll would take 1 s
    expect(received.messages).toEqual(Array.from({ length: last }, (_, index) => balanceUpdate('a', index + 1)));
    await eventually(async () => expect(await rows()).toBe(0));
  });

  it('publishes nothing of a transaction that was rolled back', async () => {
    await messages.start();
    relay().start();
    const failed = transaction(dataSource, async (tx) => {
      await enqueue(tx, TOPIC, [balanceUpdate('rolled-back', 1)]);
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await put('a', [1]);
    relays[0]!.wake();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(received.messages).toEqual([balanceUpdate('a', 1)]);
  });

  it('finds rows without a wake, as after a process died behind its commit', async () => {
    await messages.start();
    await put('a', [1]);
    relay().start();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    await put('a', [2]);
    await eventually(() => received.assertAllInOrder(['a'], 2));
  });

  it('keeps rows that cannot be published, reports their age, and publishes them when it can', async () => {
    await put('a', [1]);
    relay().start();
    await eventually(async () => {
      const { values } = (await metrics.getSingleMetric('tollgate_outbox_oldest_seconds')!.get()) as {
        values: { value: number }[];
      };
      expect(values[0]!.value).toBeGreaterThan(0.1);
    });
    await expect(messages.publish(TOPIC, [])).rejects.toThrow(UnavailableError);
    expect(await rows()).toBe(1);
    await messages.start();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    await eventually(async () => expect(await rows()).toBe(0));
  });

  it('keeps retrying a failing topic separately while another relay holds its rows', async () => {
    const bad = 'tenant-news';
    const [released, ended] = [gate(), gate()];
    let tries = 0;
    let held = false;
    let otherRelay: Promise<void> | undefined;
    const takeRows = async (tx: EntityManager) => {
      await tx.query('SELECT FROM outbox WHERE topic = $1 FOR UPDATE', [bad]);
      held = true;
      await released.opened;
    };
    const published: unknown[] = [];
    const failing = {
      async publish(topic: string, rows: readonly unknown[]) {
        if (topic !== bad) return void published.push(...rows);
        // Separate after the first failure. After the second, another relay holds the rows. The third try hangs.
        if (tries === 2 && !held) throw new UnavailableError('not now'); // the other relay was slower
        if (++tries === 2) {
          otherRelay = dataSource.transaction(takeRows);
          await eventually(async () => expect(await database.query(WAITING_FOR_ROWS)).toHaveLength(1));
        }
        if (tries > 2) await ended.opened;
        throw new UnavailableError('not now');
      },
    } as unknown as Messages;
    const relay = new OutboxRelay(dataSource, failing, { name: 'apart' });
    try {
      const update = { tenantId: 'a', plan: 'p', status: 'active' } as never;
      await transaction(dataSource, (tx) => enqueue(tx, bad, [update]));
      await put('a', [1]);
      relay.start();
      await eventually(() => expect([published.length, tries]).toEqual([1, 2]));
      // It has polled, and found no row that it could take.
      await eventually(async () =>
        expect(await metrics.getSingleMetricAsString('tollgate_outbox_oldest_seconds')).toMatch(/"apart"} 0$/m),
      );
      released.open();
      await otherRelay;
      await eventually(() => expect(tries).toBe(3));
      await put('a', [2]);
      relay.wake();
      await eventually(() => expect(published).toHaveLength(2));
    } finally {
      released.open();
      ended.open();
      await relay.stop();
    }
  });

  it('publishes every row once from several relays on one outbox', async () => {
    await messages.start();
    const tenants = Array.from({ length: 40 }, (_, index) => `t${index}`);
    await Promise.all(
      tenants.map((tenant) =>
        put(
          tenant,
          Array.from({ length: 100 }, (_, index) => index + 1),
        ),
      ),
    );
    for (let index = 0; index < 3; index++) relay().start();
    await eventually(() => expect(received.messages).toHaveLength(4_000), { timeoutMs: 60_000 });
    expect(new Set(received.messages.map(({ tenantId, version }) => `${tenantId}/${version}`)).size).toBe(4_000);
    await eventually(async () => expect(await rows()).toBe(0));
  });

  it('publishes everything although relays lose their connections', async () => {
    await messages.start();
    for (let index = 0; index < 2; index++) relay().start();
    for (let version = 1; version <= 20; version++) {
      await eventually(() => put('a', [version]));
      relays[version % 2]!.wake();
      if (version % 7 === 0) {
        await database.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'shop' AND datname = current_database()`,
        );
        await store.cut();
      }
    }
    await eventually(() => expect(new Set(received.messages.map(({ version }) => version)).size).toBe(20));
  });

  it('quarantines what can never be published, and publishes all others in their order', async () => {
    await messages.start();
    // The store rejects one message by its content, like one that is too large.
    await database.query(
      `ALTER TABLE ${store.schema}.batch ADD CONSTRAINT no_poison CHECK (data::text NOT LIKE '%poison%')`,
    );
    await put('a', [1, 2]);
    await put('poison', [1]);
    await dataSource.query(`INSERT INTO outbox (topic, data) VALUES ('no-such-topic', '{}'), ('toString', '{}')`);
    await put('a', [3, 4]);
    relay().start();
    await eventually(() => received.assertAllInOrder(['a'], 4));
    await eventually(async () => expect(await rows()).toBe(0));
    const refused = await dataSource.query('SELECT topic, data, refused_reason FROM outbox_refused ORDER BY id');
    expect(refused).toEqual([
      { topic: TOPIC, data: balanceUpdate('poison', 1), refused_reason: expect.stringContaining('no_poison') },
      { topic: 'no-such-topic', data: {}, refused_reason: 'there is no topic "no-such-topic"' },
      { topic: 'toString', data: {}, refused_reason: 'there is no topic "toString"' },
    ]);
    // Counted once the quarantine is committed.
    await eventually(async () =>
      expect(await metrics.getSingleMetricAsString('tollgate_outbox_refused_total')).toContain('{outbox="shop"} 3'),
    );
  });

  it('quarantines nothing while the store itself has a fault', async () => {
    await messages.start();
    await database.query(`ALTER SCHEMA ${store.schema} RENAME TO away`);
    await put('a', [1]);
    const waiting = relay();
    waiting.start();
    await waiting.stop();
    expect(await rows()).toBe(1);
    await database.query(`ALTER SCHEMA away RENAME TO ${store.schema}`);
    relay().start();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(await dataSource.query('SELECT FROM outbox_refused')).toEqual([]);
  });

  it('publishes remaining rows on stop, and does not hang when it cannot', async () => {
    const blocked = relay();
    blocked.start();
    await put('a', [1]);
    await blocked.stop();
    expect(await rows()).toBe(1);
    await messages.start();
    const draining = relay();
    draining.start();
    await put('a', [2]);
    await draining.stop();
    expect(await rows()).toBe(0);
  });
});
