import { metrics, WakeableDelay } from '@tollgate/runtime';
import { elapsedMs, eventually } from '@tollgate/testing';
import { messageFailuresSuite } from './message-failures.suite';
import { MAX_BATCH_MESSAGES } from './messages';
import {
  balanceUpdate,
  Received,
  SECOND_GROUP,
  SUITE_GROUP,
  TOPIC,
  useInstances,
  type MessagesStore,
} from './messages-store.fixture';

/**
 * The guarantees of the messages seam for events (messages.ts, docs/ARCHITECTURE.md), for every implementation.
 * Request–reply has requests.suite.ts.
 */
export function messagesSuite(name: string, createStore: () => Promise<MessagesStore>): void {
  describe(`messages on ${name}`, () => {
    const { open, start } = useInstances(createStore);

    it('publishes durably: the publisher may be gone before a consumer starts', async () => {
      const publisher = await start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await publisher.close();
      const received = new Received();
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      expect(received.messages).toEqual([balanceUpdate('a', 1), balanceUpdate('a', 2)]);
    });

    it('starts several instances at the same time on an empty store', async () => {
      const received = new Received();
      const instances = await Promise.all([start(received.handler), start(received.handler), start(received.handler)]);
      await instances[2].publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 1));
    });

    it('delivers every message to every group of a topic, and a failing group delays no other', async () => {
      const first = new Received();
      const second = new Received();
      let failing = true;
      await start(first.handler, SUITE_GROUP);
      const messages = await start(async (batch) => {
        if (failing) throw new Error('this group fails');
        await second.handler(batch);
      }, SECOND_GROUP);
      await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => first.assertAllInOrder(['a'], 1));
      failing = false;
      await eventually(() => second.assertAllInOrder(['a'], 1));
    });

    it('keeps the order of each key with many keys, several publishers and oversized batches', async () => {
      const received = new Received();
      await start(received.handler);
      const tenants = Array.from({ length: 30 }, (_, index) => `t${index}`);
      const perCall = 50;
      const calls = 4;
      await Promise.all(
        [0, 1, 2].map(async (part) => {
          const publisher = await start();
          const mine = tenants.filter((_, index) => index % 3 === part);
          for (let call = 0; call < calls; call++) {
            const versions = Array.from({ length: perCall }, (_, index) => call * perCall + index + 1);
            await publisher.publish(
              TOPIC,
              versions.flatMap((version) => mine.map((tenant) => balanceUpdate(tenant, version))),
            );
          }
        }),
      );
      const versions = Array.from({ length: 2 * MAX_BATCH_MESSAGES + 1 }, (_, index) => index + 1);
      const large = await start();
      await large.publish(
        TOPIC,
        versions.map((version) => balanceUpdate('large', version)),
      );
      await eventually(() => received.assertAllInOrder(tenants, perCall * calls));
      await eventually(() => received.assertAllInOrder(['large'], versions.length));
      for (const batch of received.batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(MAX_BATCH_MESSAGES);
      }
    });

    it('keeps the order of a key when another publisher takes over', async () => {
      const received = new Received();
      await start(received.handler);
      const publishers = [await start(), await start()];
      for (let version = 1; version <= 20; version++)
        await publishers[version % 2]!.publish(TOPIC, [balanceUpdate('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 20));
    });

    it('calls a handler with one batch at a time', async () => {
      let running = 0;
      let overlaps = 0;
      const received = new Received();
      await start(async (batch) => {
        if (++running > 1) overlaps++;
        await new Promise((resolve) => setImmediate(resolve));
        await received.handler(batch);
        running--;
      });
      const publisher = await start();
      for (let version = 1; version <= 50; version++) await publisher.publish(TOPIC, [balanceUpdate('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 50));
      expect(overlaps).toBe(0);
    });

    it('notifies a waiting consumer of a message, which does not wait for its next poll', async () => {
      const arrived = new WakeableDelay();
      const messages = await start(async () => arrived.wake());
      const latenciesMs: number[] = [];
      for (let version = 1; version <= 15; version++) {
        const deliver = async () => {
          await messages.publish(TOPIC, [balanceUpdate('a', version)]);
          await arrived.wait(10_000);
        };
        latenciesMs.push(await elapsedMs(deliver));
      }
      // Without the notification each would wait for a second.
      expect(latenciesMs.sort((a, b) => a - b)[7]).toBeLessThan(500);
    });

    it('counts the messages that wait for a group', async () => {
      const received = new Received();
      let failing = true;
      const messages = await start(async (batch) => {
        if (failing) throw new Error('not yet');
        await received.handler(batch);
      });
      const expectWaiting = (count: number) =>
        eventually(async () => {
          const { values } = await metrics.getSingleMetric('tollgate_messages_waiting')!.get();
          expect(values).toContainEqual({ labels: { topic: TOPIC, group: SUITE_GROUP }, value: count });
        });
      await expectWaiting(0);
      await messages.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await messages.publish(TOPIC, [balanceUpdate('b', 1)]);
      await expectWaiting(3);
      failing = false;
      await expectWaiting(0);
      expect(received.messages).toHaveLength(3);
    });

    it('rejects a registration that is late, repeated, or for a group that the topic does not have', async () => {
      const messages = open();
      messages.consume(TOPIC, SUITE_GROUP, async () => {});
      expect(() => messages.consume(TOPIC, SUITE_GROUP, async () => {})).toThrow(/already/);
      expect(() => messages.consume(TOPIC, 'nobody', async () => {})).toThrow(/not a group/);
      await messages.start();
      expect(() => messages.consume(TOPIC, SECOND_GROUP, async () => {})).toThrow(/before start/);
    });
  });

  messageFailuresSuite(name, createStore);
}
