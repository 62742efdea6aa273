import { eventually, type KafkaServer } from '@tollgate/testing';
import { metrics } from '@tollgate/runtime';
import { forgedTests } from '../sign/forged.part';
import { applyTopics, withAdmin } from '../admin/apply-topics';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../../messages-store.fixture';
import { replayDead, toRecord, type DeadLetter } from './dead-letters';
import type { KafkaMessagesOptions } from '../kafka-messages';
import { Signatures } from '../sign/signatures';
import { TEST_IDENTITY } from '../sign/test-identity.fixture';
import { KafkaStore, TEST_TOPICS } from '../test-store.fixture';

/** With a Kafka that other tests use too: every store has topics of its own. */
export function deadLettersTests(kafka: KafkaServer): void {
  forgedTests(kafka);
  const ADMIN_TIMEOUT_MS = 20_000;
  const at = new Date().toISOString();
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));

  const POISON: [string, Buffer | null, RegExp][] = [
    ['text', Buffer.from('hello'), /not JSON/],
    ['cut off', json({ id: 'm', v: 1, at, data: balanceUpdate('a', 1) }).subarray(0, 40), /not JSON/],
    ['nothing', Buffer.alloc(0), /not JSON/],
    ['a tombstone', null, /not JSON/],
    ['bytes', Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x1f, 0x8b]), /not JSON/],
    ['a list', json([balanceUpdate('a', 1)]), /not an envelope/],
    ['a number', json(7), /not an envelope/],
    ['no envelope', json(balanceUpdate('a', 1)), /not an envelope/],
    ['a version as text', json({ id: 'm', v: '1', at, data: balanceUpdate('a', 1) }), /not an envelope/],
    ['a version to come', json({ id: 'm', v: 999, at, data: balanceUpdate('a', 1) }), /version 999/],
    ['no data', json({ id: 'm', v: 1, at, data: null }), /data is not/],
    ['no tenant', json({ id: 'm', v: 1, at, data: { version: '1' } }), /no tenantId/],
    ['a tenant of another type', json({ id: 'm', v: 1, at, data: { tenantId: 7 } }), /no tenantId/],
    ['much of it', Buffer.alloc(800 * 1024, '{'), /not JSON/],
  ];

  describe('messages on Kafka that cannot be read', () => {
    let store: KafkaStore;
    beforeEach(async () => (store = await KafkaStore.create(kafka.brokers)));
    afterEach(() => store.close());
    async function start(handler: Received['handler'], options: Partial<KafkaMessagesOptions> = {}) {
      const messages = store.open(options);
      messages.consume(TOPIC, SUITE_GROUP, handler);
      await messages.start();
      return messages;
    }
    const deadCount = async () => {
      const { values } = await metrics.getSingleMetric('tollgate_messages_dead_total')!.get();
      return values.reduce((sum, { value }) => sum + value, 0);
    };

    it('of every kind are quarantined with reason and origin, are counted, and block no others', async () => {
      const received = new Received();
      const messages = await start(received.handler);
      const before = await deadCount();
      for (const [index, [, value]] of POISON.entries()) {
        await messages.publish(TOPIC, [balanceUpdate('a', index + 1)]);
        // The key of 'a', and so its partition.
        await store.publishBytes(TOPIC, value, 'a');
      }
      await eventually(() => received.assertAllInOrder(['a'], POISON.length));
      expect(received.messages).toHaveLength(POISON.length);
      const dead = await eventually(async () => {
        const letters = await store.deadLetters(TOPIC, SUITE_GROUP);
        expect(letters).toHaveLength(POISON.length);
        return letters;
      });
      // Counted once they are in the dead topic.
      await eventually(async () => expect(await deadCount()).toBe(before + POISON.length));
      for (const [index, [, value, reason]] of POISON.entries()) {
        expect(dead[index]).toMatchObject({ topic: TOPIC, group: SUITE_GROUP, offset: String(2 * index + 1) });
        expect(dead[index]!.reason).toMatch(reason);
        expect(dead[index]!.value?.toString('hex')).toBe(value?.toString('hex'));
        expect(dead[index]!.key?.toString()).toBe('a');
      }
    });

    it('are quarantined once, also when their batch is redelivered', async () => {
      let failures = 0;
      const received = new Received();
      const messages = await start(async (batch) => {
        if (failures++ < 3) throw new Error('not yet');
        await received.handler(batch);
      });
      await store.publishBytes(TOPIC, Buffer.from('poison'), 'a');
      await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 1));
      expect(await store.deadLetters(TOPIC, SUITE_GROUP)).toHaveLength(1);
    });

    it('are also quarantined in a topic that was recreated while consumed, with offsets from 0 again', async () => {
      const received = new Received();
      const messages = await start(received.handler);
      await messages.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2), balanceUpdate('a', 3)]);
      await store.publishBytes(TOPIC, Buffer.from('old'), 'a');
      await eventually(async () => expect(await store.deadLetters(TOPIC, SUITE_GROUP)).toHaveLength(1));
      await messages.publish(TOPIC, [balanceUpdate('a', 4)]);
      await eventually(() => received.assertAllInOrder(['a'], 4));
      const before = await deadCount();
      await withAdmin(store.connection, ADMIN_TIMEOUT_MS, (admin) =>
        admin.deleteTopics({ topics: [store.prefix + TOPIC] }),
      );
      await eventually(() => applyTopics(store.connection, { topics: TEST_TOPICS, topicPrefix: store.prefix }), {
        timeoutMs: ADMIN_TIMEOUT_MS,
      });
      await eventually(() => store.publishBytes(TOPIC, Buffer.from('new'), 'a'), { timeoutMs: ADMIN_TIMEOUT_MS });
      await messages.publish(TOPIC, [balanceUpdate('a', 5)]);
      await eventually(() => received.assertAllInOrder(['a'], 5), { timeoutMs: 60_000 });
      await eventually(async () => {
        const letters = await store.deadLetters(TOPIC, SUITE_GROUP);
        expect(letters.map(({ value }) => String(value))).toEqual(['old', 'new']);
      });
      expect(await deadCount()).toBe(before + 1);
    });

    it('are handled when a consumer that can read them gets the replay, and are dead again otherwise', async () => {
      // A newer release publishes, and the present one consumes.
      const definition = TEST_TOPICS[TOPIC];
      const tomorrow = { ...TEST_TOPICS, [TOPIC]: { ...definition, schemaVersion: definition.schemaVersion + 1 } };
      const today = await start(new Received().handler);
      const publisher = store.open({ topics: tomorrow });
      await publisher.start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await store.publishBytes(TOPIC, Buffer.from('poison'), 'a');
      const dead = await eventually(async () => {
        const letters = await store.deadLetters(TOPIC, SUITE_GROUP);
        expect(letters).toHaveLength(3);
        return letters;
      });
      await today.close();
      const received = new Received();
      await start(received.handler, { topics: tomorrow });
      await replayDead(store.connection, dead, { topicPrefix: store.prefix });
      await eventually(() => received.assertAllInOrder(['a'], 2));
      await eventually(async () => {
        const [again, ...others] = await store.deadLetters(TOPIC, SUITE_GROUP);
        expect(others).toEqual([]);
        expect(again?.value?.toString()).toBe('poison');
        expect(Number(again?.offset)).toBeGreaterThan(Number(dead[2]!.offset));
      });
    });

    it('are not replayed at all when their topic no longer has the partition of one of them', async () => {
      const received = new Received();
      await start(received.handler);
      const value = json({ id: 'm', v: 1, at, data: balanceUpdate('a', 1) });
      const signed = new Signatures(TEST_IDENTITY).sign(store.prefix + TOPIC, { key: 'a', value }, 'billing', [
        'gateway',
      ]);
      const letter: DeadLetter = {
        ...{ topic: TOPIC, group: SUITE_GROUP, reason: 'not read then', at },
        ...{ partition: 0, offset: '1', key: Buffer.from('a'), value, headers: signed.headers! },
      };
      const dead = [letter, { ...letter, partition: TEST_TOPICS[TOPIC].partitions, offset: '2' }];
      await store.publisher.send({ topic: `${store.prefix}${TOPIC}.dead`, messages: dead.map(toRecord) });
      await expect(replayDead(store.connection, dead, { topicPrefix: store.prefix })).rejects.toThrow(
        /of its partition 3, which it does not have\. Nothing was replayed: run "tollgate topics apply/,
      );
      const left = await store.deadLetters(TOPIC, SUITE_GROUP);
      expect(left.map(({ offset }) => offset).sort()).toEqual(['1', '2']);
      await replayDead(store.connection, [letter], { topicPrefix: store.prefix });
      await eventually(() => expect(received.messages).toHaveLength(1));
    });

    it('are delivered twice when they are published twice: the ids inside make that harmless', async () => {
      const received = new Received();
      const messages = await start(received.handler);
      await messages.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await messages.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await messages.publish(TOPIC, [balanceUpdate('a', 3)]);
      await eventually(() => received.assertAllInOrder(['a'], 3));
      expect(received.messages.map(({ version }) => version)).toEqual(['1', '2', '1', '2', '3']);
    });
  });
}
