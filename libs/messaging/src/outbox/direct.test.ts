import { openDataSource, query, transaction } from '@tollgate/postgres';
import { elapsedMs, eventually, OUTBOX_TABLE_SQL, useTestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../messages-store.fixture';
import { MAX_BATCH_MESSAGES } from '../messages';
import { PostgresStore } from '../postgres/test-store.fixture';
import type { PostgresMessages } from '../postgres/postgres-messages';
import { enqueue } from './outbox';
import { OutboxRelay } from './outbox-relay';

const database = useTestDatabase();

/** A service whose data are in the database of the messages: here `metering`, with the rights of its role. */
describe('publishing in the transaction of a service', () => {
  let dataSource: DataSource;
  let store: PostgresStore;
  let messages: PostgresMessages;
  let received: Received;
  let relay: OutboxRelay;
  const others: PostgresMessages[] = [];

  beforeAll(async () => {
    await database.query('CREATE SCHEMA shop');
    const options = { url: database.url, schema: 'shop', applicationName: 'shop', poolSize: 4 };
    dataSource = await openDataSource(options);
    await dataSource.query(OUTBOX_TABLE_SQL);
    await dataSource.query(`GRANT USAGE ON SCHEMA shop TO tollgate_metering;
      GRANT SELECT, INSERT, UPDATE, DELETE ON outbox TO tollgate_metering;
      GRANT SELECT, INSERT ON outbox_refused TO tollgate_metering`);
    await dataSource.destroy();
    dataSource = await openDataSource({ ...options, role: 'tollgate_metering' });
  });
  afterAll(() => dataSource.destroy());

  beforeEach(() => {
    store = new PostgresStore(database, ['metering']);
    messages = store.open();
    received = new Received();
    messages.consume(TOPIC, SUITE_GROUP, received.handler);
    relay = new OutboxRelay(dataSource, messages, { name: 'metering' });
  });
  afterEach(async () => {
    await relay.stop();
    await Promise.all([messages, ...others.splice(0)].map((each) => each.close()));
    await store.close();
  });

  const put = (versions: number[]) =>
    transaction(dataSource, (tx) =>
      enqueue(
        tx,
        TOPIC,
        versions.map((version) => balanceUpdate('a', version)),
      ),
    );
  const publishedAfterMs = (version: number) =>
    elapsedMs(async () => {
      await put([version]);
      relay.wake();
      await eventually(() => received.assertAllInOrder(['a'], version), { everyMs: 2 });
    });
  const stored = () => query<{ id: string }>(dataSource, 'SELECT id FROM outbox');

  it('publishes what commits, in order, at once after a wake, and stores nothing in the outbox', async () => {
    await messages.start();
    relay.start();
    await database.query('ALTER TABLE shop.outbox ADD CONSTRAINT unused CHECK (false) NOT VALID');
    try {
      await put([1, 2]);
      relay.wake();
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const took: number[] = [];
      for (let version = 3; version <= 9; version++) took.push(await publishedAfterMs(version));
      expect(took.sort((a, b) => a - b)[3]).toBeLessThan(900); // the consumer's own poll would take 1 s
    } finally {
      await database.query('ALTER TABLE shop.outbox DROP CONSTRAINT unused');
    }
  });

  it('publishes more than a batch in order, and keeps a plan only for the statement of one batch', async () => {
    await messages.start();
    relay.start();
    const plansAfter = (versions: number[]) =>
      transaction(dataSource, async (tx) => {
        const updates = versions.map((version) => balanceUpdate('a', version));
        await enqueue(tx, TOPIC, updates);
        // The plans of this connection.
        const sql = 'SELECT 1 FROM pg_prepared_statements WHERE statement LIKE $1';
        return (await query(tx, sql, [`%INSERT INTO ${store.schema}.batch%`])).length;
      });
    const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const last = 2 * MAX_BATCH_MESSAGES + 1;
    expect(await plansAfter(range(1, last))).toBe(0);
    expect(await plansAfter([last + 1])).toBe(1);
    relay.wake();
    await eventually(() => received.assertAllInOrder(['a'], last + 1));
  });

  it('publishes nothing of a transaction that was rolled back', async () => {
    await messages.start();
    relay.start();
    const failed = transaction(dataSource, async (tx) => {
      await enqueue(tx, TOPIC, [balanceUpdate('rolled-back', 1)]);
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    await put([1]);
    relay.wake();
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(received.messages).toEqual([balanceUpdate('a', 1)]);
  });

  it('finds messages without a wake, as after a process died behind its commit', async () => {
    await messages.start();
    relay.start();
    await put([1]);
    await eventually(() => received.assertAllInOrder(['a'], 1));
  });

  it('notifies a consumer in another process', async () => {
    const other = store.open();
    others.push(other);
    other.consume(TOPIC, SUITE_GROUP, received.handler);
    await other.start();
    await other.publish(TOPIC, [balanceUpdate('a', 1)]);
    // From now on the other one is the consumer.
    await eventually(() => received.assertAllInOrder(['a'], 1));
    await messages.start();
    relay.start();
    const took: number[] = [];
    for (let version = 2; version <= 8; version++) took.push(await publishedAfterMs(version));
    expect(took.sort((a, b) => a - b)[3]).toBeLessThan(900);
  });

  it('still publishes rows that are in the outbox, and stores rows while messages are not started', async () => {
    await put([1]);
    relay.start();
    await put([2]);
    expect(await stored()).toHaveLength(2);
    await messages.start();
    await eventually(() => received.assertAllInOrder(['a'], 2));
    await eventually(async () => expect(await stored()).toEqual([]));
  });

  it('lets the role of a service publish, and neither read nor delete messages', async () => {
    await messages.start();
    relay.start();
    await put([1]);
    for (const sql of ['SELECT FROM', 'DELETE FROM', 'TRUNCATE'])
      await expect(dataSource.query(`${sql} ${store.schema}.batch`)).rejects.toThrow(/permission denied/);
  });
});
