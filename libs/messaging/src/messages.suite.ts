import type { CreditNews } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { MAX_BATCH_MESSAGES, type Messages } from './messages';
import { news, Received, SECOND_GROUP, SUITE_GROUP, TOPIC, type MessagesStore } from './messages-store.suite';
import { Signal } from './signal';

/** The guarantees of the messages seam on events (messages.ts, docs/ARCHITECTURE.md), for any implementation. Request–reply: requests.suite.ts. */
export function messagesSuite(name: string, createStore: () => Promise<MessagesStore>): void {
  describe(`messages on ${name}`, () => {
    let store: MessagesStore;
    let opened: Messages[];
    beforeEach(async () => {
      store = await createStore();
      opened = [];
    });
    afterEach(async () => {
      await Promise.all(opened.map((messages) => messages.close()));
      await store.close();
    });

    function open(): Messages {
      const messages = store.open();
      opened.push(messages);
      return messages;
    }
    async function start(handler?: (messages: readonly CreditNews[]) => Promise<void>, group = SUITE_GROUP) {
      const messages = open();
      if (handler) messages.consume(TOPIC, group, handler);
      await messages.start();
      return messages;
    }

    it('publish is durable when it returns: the publisher may be gone before anybody consumes', async () => {
      const publisher = await start();
      await publisher.publish(TOPIC, [news('a', 1), news('a', 2)]);
      await publisher.close();
      const received = new Received();
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      expect(received.messages).toEqual([news('a', 1), news('a', 2)]);
    });

    it('instances may start at the same time on an empty store', async () => {
      const received = new Received();
      const instances = await Promise.all([start(received.handler), start(received.handler), start(received.handler)]);
      await instances[2]!.publish(TOPIC, [news('a', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 1));
    });

    it('every group of a topic gets every message, and one that fails holds up no other', async () => {
      const first = new Received();
      const second = new Received();
      let failing = true;
      await start(first.handler, SUITE_GROUP);
      const messages = await start(async (batch) => {
        if (failing) throw new Error('this group fails');
        await second.handler(batch);
      }, SECOND_GROUP);
      await messages.publish(TOPIC, [news('a', 1)]);
      await eventually(() => first.assertAllInOrder(['a'], 1));
      failing = false;
      await eventually(() => second.assertAllInOrder(['a'], 1));
    });

    it('order per key holds with many keys, several publishers, and batches larger than one handler call', async () => {
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
              versions.flatMap((version) => mine.map((tenant) => news(tenant, version))),
            );
          }
        }),
      );
      const versions = Array.from({ length: 2 * MAX_BATCH_MESSAGES + 1 }, (_, index) => index + 1);
      const large = await start();
      await large.publish(
        TOPIC,
        versions.map((version) => news('large', version)),
      );
      await eventually(() => received.assertAllInOrder(tenants, perCall * calls), { timeoutMs: 15_000 });
      await eventually(() => received.assertAllInOrder(['large'], versions.length), { timeoutMs: 15_000 });
      for (const batch of received.batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(MAX_BATCH_MESSAGES);
      }
    });

    it('a publisher that takes over from another one keeps the order of a key', async () => {
      const received = new Received();
      await start(received.handler);
      const publishers = [await start(), await start()];
      for (let version = 1; version <= 20; version++)
        await publishers[version % 2]!.publish(TOPIC, [news('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 20));
    });

    it('a handler is called with one batch at a time', async () => {
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
      for (let version = 1; version <= 50; version++) await publisher.publish(TOPIC, [news('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 50));
      expect(overlaps).toBe(0);
    });

    it('a waiting consumer is told of a message, and does not find it at its next look', async () => {
      const arrived = new Signal();
      const messages = await start(async () => arrived.wake());
      const latenciesMs: number[] = [];
      for (let version = 1; version <= 15; version++) {
        const before = performance.now();
        await messages.publish(TOPIC, [news('a', version)]);
        await arrived.wait(10_000);
        latenciesMs.push(performance.now() - before);
      }
      expect(latenciesMs.sort((a, b) => a - b)[7]).toBeLessThan(250);
    });

    it('a batch whose handler throws comes again, and nothing of its key overtakes it', async () => {
      const received = new Received();
      let failures = 0;
      let failing = true;
      const messages = await start(async (batch) => {
        if (failing) {
          failures++;
          expect(batch[0]).toEqual(news('a', 1));
          throw new Error('not yet');
        }
        await received.handler(batch);
      });
      await messages.publish(TOPIC, [news('a', 1)]);
      await eventually(() => expect(failures).toBeGreaterThan(0));
      await messages.publish(TOPIC, [news('a', 2), news('a', 3)]);
      await eventually(() => expect(failures).toBeGreaterThan(2));
      failing = false;
      await eventually(() => received.assertAllInOrder(['a'], 3));
    });

    it('what cannot be read goes aside with its reason and blocks nobody', async () => {
      const received = new Received();
      await start(received.handler);
      const publisher = await start();
      const unreadable: [unknown, RegExp][] = [
        ['text', /envelope/],
        [{ id: 'msg_1', data: {} }, /envelope/],
        [{ id: 'msg_2', v: 999, at: new Date().toISOString(), data: news('a', 9) }, /version 999/],
        [{ id: 'msg_3', v: 1, at: new Date().toISOString(), data: { version: '1' } }, /tenantId/],
      ];
      await publisher.publish(TOPIC, [news('a', 1)]);
      for (const [value] of unreadable) await store.publishRaw(TOPIC, value);
      await publisher.publish(TOPIC, [news('a', 2)]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const dead = await eventually(async () => {
        const found = await store.dead(TOPIC, SUITE_GROUP);
        expect(found).toHaveLength(unreadable.length);
        return found;
      });
      for (const [message, reason] of unreadable) {
        expect(dead).toContainEqual({ message, reason: expect.stringMatching(reason) });
      }
    });

    it('what a consumer says it cannot handle goes aside with its reason, and the others around it are handled', async () => {
      const received = new Received();
      const messages = open();
      const whyNot = (data: unknown) => ((data as CreditNews).suspended ? 'not today' : null);
      messages.consume(TOPIC, SUITE_GROUP, received.handler, { whyNot });
      await messages.start();
      await messages.publish(TOPIC, [news('a', 1), { ...news('a', 9), suspended: true }, news('a', 2)]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const dead = () => store.dead(TOPIC, SUITE_GROUP);
      await eventually(async () => expect(await dead()).toMatchObject([{ reason: 'not today' }]));
      expect(received.messages).toHaveLength(2);
    });

    it('instances that consume the same group share it: nothing is handled twice in the normal case', async () => {
      const received = new Received();
      await Promise.all([start(received.handler), start(received.handler)]);
      const publisher = await start();
      for (let version = 1; version <= 40; version++) await publisher.publish(TOPIC, [news('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 40));
      expect(received.messages).toHaveLength(40);
    });

    it('stopConsuming finishes the batch in hand, takes no more, and leaves the rest to others; publish goes on working', async () => {
      const received = new Received();
      const entered = new Signal();
      const finish = new Signal();
      const stopping = await start(async (batch) => {
        entered.wake();
        await finish.wait(10_000);
        await received.handler(batch);
      });
      await stopping.publish(TOPIC, [news('a', 1)]);
      await entered.wait(10_000);
      const stopped = stopping.stopConsuming();
      await stopping.publish(TOPIC, [news('a', 2)]);
      finish.wake();
      await stopped;
      expect(received.messages).toEqual([news('a', 1)]);
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      expect(received.messages).toEqual([news('a', 1), news('a', 2)]);
    });

    it('stopConsuming returns while a handler keeps failing, and the batch is not lost', async () => {
      const entered = new Signal();
      const failing = await start(async () => {
        entered.wake();
        throw new Error('always');
      });
      await failing.publish(TOPIC, [news('a', 1)]);
      await entered.wait(10_000);
      await failing.stopConsuming();
      const received = new Received();
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 1));
    });

    it('kill -9 of a consumer in the middle of a batch: another process gets it again, in order', async () => {
      const victim = await store.spawnConsumer(1);
      const publisher = await start();
      await publisher.publish(TOPIC, [news('a', 1)]);
      await eventually(() => expect(victim.batches.flat()).toContain('1'), { timeoutMs: 10_000 });
      await publisher.publish(TOPIC, [news('a', 2), news('a', 3)]);
      await eventually(() => expect(victim.batches.flat()).toContain('3'), { timeoutMs: 10_000 });
      const received = new Received();
      await start(received.handler);
      await publisher.publish(TOPIC, [news('a', 4)]);
      await victim.kill();
      await eventually(() => expect(received.messages.map(({ version }) => version)).toContain('4'));
      const versions = received.messages.map(({ version }) => Number(version));
      expect(versions.filter((version) => version > 1)).toEqual([2, 3, 4]);
    }, 40_000);

    it('a consumer whose connections are cut in the middle of a batch loses nothing', async () => {
      const received = new Received();
      const entered = new Signal();
      const finish = new Signal();
      let first = true;
      const messages = await start(async (batch) => {
        if (first) {
          first = false;
          entered.wake();
          await finish.wait(10_000);
          throw new Error('cut off');
        }
        await received.handler(batch);
      });
      const publisher = await start();
      await publisher.publish(TOPIC, [news('a', 1), news('a', 2)]);
      await entered.wait(10_000);
      await store.cut(messages);
      finish.wake();
      await publisher.publish(TOPIC, [news('a', 3)]);
      await eventually(() => received.assertAllInOrder(['a'], 3), { timeoutMs: 15_000 });
    });

    it('nothing is lost or reordered among 20,000 messages while all connections are cut again and again', async () => {
      const received = new Received();
      await Promise.all([start(received.handler), start(received.handler)]);
      const publisher = await start();
      const tenants = Array.from({ length: 20 }, (_, index) => `t${index}`);
      const perCall = 20;
      for (let version = 1; version <= 1_000; version += perCall) {
        const versions = Array.from({ length: perCall }, (_, index) => version + index);
        const batch = versions.flatMap((each) => tenants.map((tenant) => news(tenant, each)));
        if (version % 200 === 1) await store.cut();
        // A publish that fails may have happened: to publish it again is the caller's part.
        await eventually(() => publisher.publish(TOPIC, batch), { timeoutMs: 10_000 });
      }
      await eventually(() => received.assertAllInOrder(tenants, 1_000), { timeoutMs: 20_000, everyMs: 100 });
    }, 40_000);

    it('rejects what was registered too late, twice, or for a group that the topic does not have', async () => {
      const messages = open();
      messages.consume(TOPIC, SUITE_GROUP, async () => {});
      expect(() => messages.consume(TOPIC, SUITE_GROUP, async () => {})).toThrow(/already/);
      expect(() => messages.consume(TOPIC, 'nobody', async () => {})).toThrow(/not a group/);
      await messages.start();
      expect(() => messages.consume(TOPIC, SECOND_GROUP, async () => {})).toThrow(/before start/);
    });
  });
}
