import { openDataSource, transaction } from '@tollgate/postgres';
import { elapsedMs, eventually, leastMs, OUTBOX_TABLE_SQL, useKafka, useTestDatabase } from '@tollgate/testing';
import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { setTimeout as delay } from 'node:timers/promises';
import { balanceUpdate, SUITE_GROUP, Received, TOPIC } from '../../messages-store.fixture';
import { enqueue } from '../../outbox/outbox';
import { OutboxRelay } from '../../outbox/outbox-relay';
import { applyTopics, withAdmin } from '../admin/apply-topics';
import { KafkaStore, TEST_BROKER, TEST_TOPICS } from '../test-store.fixture';

const kafka = useKafka(TEST_BROKER);
const database = useTestDatabase();
const ADMIN_TIMEOUT_MS = 20_000;
/** Enough for an idle broker, and far less than a topic that cannot be written takes to fail. */
const PROMPT_MS = 3_000;
const OUTAGE_MS = 12_000;
/** Between two calls, so that the broker and other tests have the processors, too. */
const PAUSE_MS = 50;
const BAD_TOPIC = 'tenant-news';
const tenantUpdate = { tenantId: 'a', plan: 'default', status: 'active' } as never;

/** Its leaders are unknown. kafkajs then reads the leaders of no topic in the same request. */
const remove = (store: KafkaStore) =>
  withAdmin(store.connection, ADMIN_TIMEOUT_MS, (admin) => admin.deleteTopics({ topics: [store.prefix + BAD_TOPIC] }));

/**
 * Its leader is up, and refuses every message. (Kafka 4 never requires more replicas in sync than a topic has, so a
 * single broker cannot lack any.)
 */
async function close(store: KafkaStore): Promise<void> {
  const topic = store.prefix + BAD_TOPIC;
  const configEntries = [{ name: 'max.message.bytes', value: '1' }];
  await withAdmin(store.connection, ADMIN_TIMEOUT_MS, (admin) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    }),
  );
  // The setting is in force only some time after the answer.
  const producer = new Kafka({
    brokers: [...kafka.brokers],
    retry: { retries: 0 },
    logLevel: logLevel.NOTHING,
  }).producer();
  await producer.connect();
  const sendOne = () => producer.send({ topic, messages: [{ key: 'a', value: '{}' }] });
  await eventually(() => expect(sendOne()).rejects.toMatchObject({ type: 'MESSAGE_TOO_LARGE' }), {
    timeoutMs: ADMIN_TIMEOUT_MS,
  });
  await producer.disconnect();
}

const mend = (store: KafkaStore) => applyTopics(store.connection, { topics: TEST_TOPICS, topicPrefix: store.prefix });

describe('a topic that cannot be written', () => {
  let store: KafkaStore;
  beforeEach(async () => (store = await KafkaStore.create(kafka.brokers)));
  afterEach(() => store.close());

  it.each([
    ['is not there', remove],
    ['is refused by its leader', close],
  ])('fails alone because it %s: other topics are published meanwhile, and requests answered', async (_, spoil) => {
    const messages = store.open();
    messages.handle('auth.tenants.get', async ({ tenantId }) => ({ id: tenantId }) as never);
    await messages.start();
    try {
      await eventually(() => messages.request('auth.tenants.get', { tenantId: 'warm' }));
      await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
      await spoil(store);
      let failed: unknown;
      const failing = messages.publish(BAD_TOPIC, [tenantUpdate]).catch((error: unknown) => (failed = error));
      const from = performance.now();
      let worstMs = 0;
      for (let version = 2; performance.now() - from < OUTAGE_MS; version++) {
        const tookMs = await elapsedMs(() =>
          Promise.all([
            messages.publish(TOPIC, [balanceUpdate('a', version)]),
            messages.request('auth.tenants.get', { tenantId: 'a' }, { deadlineMs: 15_000 }),
          ]),
        );
        worstMs = Math.max(worstMs, tookMs);
        await delay(PAUSE_MS);
      }
      await failing;
      process.stderr.write(
        `beside a topic that cannot be written: publish and request took ${worstMs.toFixed()} ms at most\n`,
      );
      expect(failed).toMatchObject({ name: 'UnavailableError' });
      expect(worstMs).toBeLessThan(PROMPT_MS);
      await mend(store);
      await eventually(() => messages.publish(BAD_TOPIC, [tenantUpdate]));
    } finally {
      await messages.close();
    }
  });

  it('delays only its own rows of an outbox, which follow when it can be written', async () => {
    await database.query('CREATE SCHEMA shop');
    const dataSource = await openDataSource({
      url: database.url,
      schema: 'shop',
      applicationName: 'shop',
      poolSize: 4,
    });
    await dataSource.query(OUTBOX_TABLE_SQL);
    const messages = store.open();
    const received = new Received();
    messages.consume(TOPIC, SUITE_GROUP, received.handler);
    await messages.start();
    const relay = new OutboxRelay(dataSource, messages, { name: 'shop' });
    const left = () => dataSource.query<unknown[]>('SELECT topic, count(*)::int AS rows FROM outbox GROUP BY topic');
    try {
      await close(store);
      // More than a batch of its rows, all older than the others.
      await transaction(dataSource, (tx) =>
        enqueue(
          tx,
          BAD_TOPIC,
          Array.from({ length: 1_500 }, () => tenantUpdate),
        ),
      );
      await transaction(dataSource, (tx) => enqueue(tx, TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]));
      relay.start();
      await eventually(() => received.assertAllInOrder(['a'], 2), { timeoutMs: 60_000 });
      let last = 2;
      const tookMs = await leastMs(PROMPT_MS, () =>
        elapsedMs(async () => {
          await transaction(dataSource, (tx) => enqueue(tx, TOPIC, [balanceUpdate('a', ++last)]));
          relay.wake();
          await eventually(() => received.assertAllInOrder(['a'], last));
        }),
      );
      expect(tookMs).toBeLessThan(PROMPT_MS);
      expect(received.messages).toHaveLength(last);
      await mend(store);
      await eventually(async () => expect(await left()).toEqual([]), { timeoutMs: 60_000 });
    } finally {
      await relay.stop();
      await messages.close();
      await dataSource.destroy();
    }
  });
});
