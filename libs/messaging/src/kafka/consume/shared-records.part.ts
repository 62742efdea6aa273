import type { BalanceUpdate } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually, type KafkaServer } from '@tollgate/testing';
import type { KafkaMessage } from 'kafkajs';
import { messageFailuresSuite } from '../../message-failures.suite';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../../messages-store.fixture';
import { originOf, replayTopic, toRecord } from './dead-letters';
import type { KafkaMessages } from '../kafka-messages';
import { readTopic } from './read-topic';
import { MAX_RECORD_BYTES, MAX_RECORD_MESSAGES } from '../publish/shared-records';
import { KafkaStore, SHARING_TOPICS } from '../test-store.fixture';

/** With a Kafka that other tests use too: every store has topics of its own. */
export function sharedRecordsTests(kafka: KafkaServer): void {
  const createStore = () => KafkaStore.create(kafka.brokers, SHARING_TOPICS);
  const versions = (count: number, tenant = 'a') =>
    Array.from({ length: count }, (_, index) => balanceUpdate(tenant, index + 1));
  /** Rejected by `validate`. */
  const refused = (version: number) => ({ ...balanceUpdate('a', version), suspended: true });
  const validate = (data: unknown) => ((data as BalanceUpdate).suspended ? 'not today' : null);

  messageFailuresSuite('Kafka with shared records', createStore);

  describe('messages on Kafka that share a record', () => {
    let store: KafkaStore;
    beforeEach(async () => (store = await createStore()));
    afterEach(() => store.close());
    async function start(handler?: Received['handler'], more: Parameters<KafkaMessages['consume']>[3] = {}) {
      const messages = store.open();
      if (handler) messages.consume(TOPIC, SUITE_GROUP, handler, more);
      await messages.start();
      return messages;
    }
    /** All records of the topic. */
    async function recordsOfTopic(): Promise<KafkaMessage[]> {
      const found: KafkaMessage[] = [];
      await readTopic(store.connection, store.prefix + TOPIC, (message) => found.push(message));
      return found;
    }
    const letters = () => store.deadLetters(TOPIC, SUITE_GROUP);
    const replay = (origins: string[] | 'all') =>
      replayTopic(store.connection, TOPIC, origins, { topicPrefix: store.prefix });

    it('are in order beside records of one message, and are counted as messages', async () => {
      const received = new Received();
      const publisher = await start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1)]);
      const more = versions(2 * MAX_RECORD_MESSAGES + 2).slice(1);
      await publisher.publish(
        TOPIC,
        more.flatMap((each) =>
          Number(each.version) <= 3 ? [each, balanceUpdate('b', Number(each.version) - 1)] : each,
        ),
      );
      expect(await recordsOfTopic()).toHaveLength(1 + 3 + 1);
      const handled = async () => {
        const { values } = await metrics.getSingleMetric('tollgate_messages_handled_total')!.get();
        return values.find(({ labels }) => labels['topic'] === TOPIC && labels['group'] === SUITE_GROUP)?.value ?? 0;
      };
      const before = await handled();
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], more.length + 1));
      await eventually(() => received.assertAllInOrder(['b'], 2));
      expect(received.messages).toHaveLength(more.length + 3);
      await eventually(async () => expect(await handled()).toBe(before + more.length + 3));
    });

    it('are handled around an unreadable one, which is quarantined alone and can be replayed alone', async () => {
      const received = new Received();
      const today = await start(received.handler, { validate });
      await today.publish(TOPIC, [balanceUpdate('a', 1), refused(9), balanceUpdate('a', 2), refused(8)]);
      await store.publishBytes(TOPIC, Buffer.from('poison'), 'a');
      await today.publish(TOPIC, [balanceUpdate('a', 3), balanceUpdate('a', 4)]);
      await eventually(() => received.assertAllInOrder(['a'], 4));
      expect(received.messages).toHaveLength(4);
      const dead = await eventually(async () => {
        const found = await letters();
        expect(found.map((letter) => originOf(letter).split('/').slice(2).join('/'))).toEqual(['0/1', '0/3', '1']);
        return found;
      });
      expect(dead[0]).toMatchObject({ index: 1, reason: 'not today', key: Buffer.from('a') });
      expect(JSON.parse(String(dead[0]!.value))).toMatchObject({ data: refused(9) });
      await today.close();

      // Nobody consumes: a replayed message is a separate record.
      const origin = originOf(dead[0]!);
      expect(await replay([origin])).toEqual({ replayed: [origin], missing: [] });
      const replayed = (await recordsOfTopic()).at(-1)!;
      expect(JSON.parse(String(replayed.value))).toMatchObject({ data: refused(9) });
      expect(await replay([origin])).toEqual({ replayed: [], missing: [origin] });
      expect(await letters()).toHaveLength(2);

      const later = new Received();
      await start(later.handler);
      await eventually(() => expect(later.messages).toEqual([refused(9)]));
      expect((await replay('all')).replayed).toHaveLength(2);
      await eventually(() => expect(later.messages).toEqual([refused(9), refused(8)]));
      // The one that nobody can read is back, as a whole record.
      await eventually(async () => {
        const left = await letters();
        expect(left.map(({ value, index }) => [String(value), index])).toEqual([['poison', undefined]]);
        expect(left[0]!.offset).not.toBe(dead[2]!.offset);
      });
    });

    it('are quarantined once when their batch is redelivered, and a batch is redelivered as a whole', async () => {
      const received = new Received();
      let failures = 0;
      const messages = await start(
        async (batch) => {
          expect(batch).toEqual([balanceUpdate('a', 1), balanceUpdate('a', 2)]);
          if (failures++ < 3) throw new Error('not yet');
          await received.handler(batch);
        },
        { validate },
      );
      await messages.publish(TOPIC, [balanceUpdate('a', 1), refused(9), balanceUpdate('a', 2)]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      expect(await letters()).toHaveLength(1);
    });

    it('are handled again from the first when the consumer is killed in the middle, but none before them', async () => {
      const victim = await store.spawnConsumer(3);
      const publisher = await start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => expect(victim.batches.flat()).toContain('1'));
      await publisher.publish(TOPIC, versions(5).slice(1));
      // It hangs with the batch in hand.
      await eventually(() => expect(victim.batches).toContainEqual(['2', '3', '4', '5']));
      await victim.kill();
      const received = new Received();
      await start(received.handler);
      await eventually(() => expect(received.messages).toHaveLength(4));
      expect(received.messages).toEqual(versions(5).slice(1));
    });

    it('do so beside one that is too large, which has a record of its own in its place', async () => {
      const received = new Received();
      const publisher = await start(received.handler);
      const [, , large] = versions(3);
      const releases = Array.from({ length: MAX_RECORD_BYTES / 16 }, (_, n) => `req_${n}`.padEnd(16, 'x'));
      const all = versions(5).map((each) => (each.version === large!.version ? { ...each, releases } : each));
      await publisher.publish(TOPIC, all);
      await eventually(() => received.assertAllInOrder(['a'], 5));
      expect(received.messages).toEqual(all);
      expect(await recordsOfTopic()).toHaveLength(3);
    });

    it('are handled after an older version has quarantined the whole record, and a replay', async () => {
      const publisher = await start();
      await publisher.publish(TOPIC, versions(3));
      const [record] = await recordsOfTopic();
      // The letter of a version that knows only records of one message.
      const letter = {
        ...({ topic: TOPIC, group: SUITE_GROUP, partition: 0, offset: '0', reason: 'not JSON' } as const),
        ...{ at: new Date().toISOString(), key: record!.key, value: record!.value, headers: record!.headers ?? {} },
      };
      await store.publisher.send({ topic: `${store.prefix}${TOPIC}.dead`, messages: [toRecord(letter)] });
      const received = new Received();
      await start(received.handler);
      await eventually(() => expect(received.messages).toEqual(versions(3)));
      expect((await replay('all')).replayed).toEqual([`${SUITE_GROUP}/0/0`]);
      await eventually(() => expect(received.messages).toEqual([...versions(3), ...versions(3)]));
      expect(await letters()).toEqual([]);
    });
  });
}
