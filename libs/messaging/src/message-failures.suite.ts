import type { BalanceUpdate } from '@tollgate/contracts';
import { WakeableDelay } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import {
  balanceUpdate,
  Received,
  SUITE_GROUP,
  TOPIC,
  useInstances,
  type MessagesStore,
} from './messages-store.fixture';

/** Reached only by a test that hangs. */
const WAIT_LIMIT_MS = 60_000;

/**
 * The guarantees of consumers when handlers throw, messages are unreadable, processes stop or die, and connections
 * break.
 */
export function messageFailuresSuite(name: string, createStore: () => Promise<MessagesStore>): void {
  describe(`messages on ${name}, when something fails`, () => {
    const instances = useInstances(createStore);
    const { open, start } = instances;

    it('redelivers a batch whose handler throws, and nothing of its key overtakes it', async () => {
      const received = new Received();
      let failures = 0;
      let failing = true;
      const messages = await start(async (batch) => {
        if (failing) {
          failures++;
          expect(batch[0]).toEqual(balanceUpdate('a', 1));
          throw new Error('not yet');
        }
        await received.handler(batch);
      });
      await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => expect(failures).toBeGreaterThan(0));
      await messages.publish(TOPIC, [balanceUpdate('a', 2), balanceUpdate('a', 3)]);
      await eventually(() => expect(failures).toBeGreaterThan(2));
      failing = false;
      await eventually(() => received.assertAllInOrder(['a'], 3));
    });

    it('quarantines an unreadable message with its reason, and blocks no other', async () => {
      const received = new Received();
      await start(received.handler);
      const publisher = await start();
      const unreadable: [unknown, RegExp][] = [
        ['text', /envelope/],
        [{ id: 'msg_1', data: {} }, /envelope/],
        [{ id: 'msg_2', v: 999, at: new Date().toISOString(), data: balanceUpdate('a', 9) }, /version 999/],
        [{ id: 'msg_3', v: 1, at: new Date().toISOString(), data: { version: '1' } }, /tenantId/],
      ];
      await publisher.publish(TOPIC, [balanceUpdate('a', 1)]);
      for (const [value] of unreadable) await instances.store.publishRaw(TOPIC, value);
      await publisher.publish(TOPIC, [balanceUpdate('a', 2)]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const dead = await eventually(async () => {
        const found = await instances.store.dead(TOPIC, SUITE_GROUP);
        expect(found).toHaveLength(unreadable.length);
        return found;
      });
      for (const [message, reason] of unreadable) {
        expect(dead).toContainEqual({ message, reason: expect.stringMatching(reason) });
      }
    });

    it('quarantines a message that `validate` rejects with its reason, and handles the others around it', async () => {
      const received = new Received();
      const messages = open();
      const validate = (data: unknown) => ((data as BalanceUpdate).suspended ? 'not today' : null);
      messages.consume(TOPIC, SUITE_GROUP, received.handler, { validate });
      await messages.start();
      await messages.publish(TOPIC, [
        balanceUpdate('a', 1),
        { ...balanceUpdate('a', 9), suspended: true },
        balanceUpdate('a', 2),
      ]);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      const dead = () => instances.store.dead(TOPIC, SUITE_GROUP);
      await eventually(async () => expect(await dead()).toMatchObject([{ reason: 'not today' }]));
      expect(received.messages).toHaveLength(2);
    });

    it('shares a group between its instances, and handles nothing twice in the normal case', async () => {
      const received = new Received();
      await Promise.all([start(received.handler), start(received.handler)]);
      const publisher = await start();
      for (let version = 1; version <= 40; version++) await publisher.publish(TOPIC, [balanceUpdate('a', version)]);
      await eventually(() => received.assertAllInOrder(['a'], 40));
      expect(received.messages).toHaveLength(40);
    });

    it('finishes the batch in progress on stopConsuming, leaves the others, and still publishes', async () => {
      const received = new Received();
      const entered = new WakeableDelay();
      const finish = new WakeableDelay();
      const stopping = await start(async (batch) => {
        entered.wake();
        await finish.wait(WAIT_LIMIT_MS);
        await received.handler(batch);
      });
      await stopping.publish(TOPIC, [balanceUpdate('a', 1)]);
      await entered.wait(WAIT_LIMIT_MS);
      const stopped = stopping.stopConsuming();
      await stopping.publish(TOPIC, [balanceUpdate('a', 2)]);
      finish.wake();
      await stopped;
      expect(received.messages).toEqual([balanceUpdate('a', 1)]);
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 2));
      expect(received.messages).toEqual([balanceUpdate('a', 1), balanceUpdate('a', 2)]);
    });

    it('returns from stopConsuming while a handler keeps failing, without losing the batch', async () => {
      const entered = new WakeableDelay();
      const failing = await start(async () => {
        entered.wake();
        throw new Error('always');
      });
      await failing.publish(TOPIC, [balanceUpdate('a', 1)]);
      await entered.wait(WAIT_LIMIT_MS);
      await failing.stopConsuming();
      const received = new Received();
      await start(received.handler);
      await eventually(() => received.assertAllInOrder(['a'], 1));
    });

    it('redelivers the batch of a killed consumer to another process, in order', async () => {
      const victim = await instances.store.spawnConsumer(1);
      const publisher = await start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => expect(victim.batches.flat()).toContain('1'), { timeoutMs: WAIT_LIMIT_MS });
      await publisher.publish(TOPIC, [balanceUpdate('a', 2), balanceUpdate('a', 3)]);
      await eventually(() => expect(victim.batches.flat()).toContain('3'), { timeoutMs: WAIT_LIMIT_MS });
      const received = new Received();
      await start(received.handler);
      await publisher.publish(TOPIC, [balanceUpdate('a', 4)]);
      await victim.kill();
      await eventually(() => expect(received.messages.map(({ version }) => version)).toContain('4'));
      const versions = received.messages.map(({ version }) => Number(version));
      expect(versions.filter((version) => version > 1)).toEqual([2, 3, 4]);
    });

    it('loses nothing when a consumer loses its connections during a batch', async () => {
      const received = new Received();
      const entered = new WakeableDelay();
      const finish = new WakeableDelay();
      let first = true;
      const messages = await start(async (batch) => {
        if (first) {
          first = false;
          entered.wake();
          await finish.wait(WAIT_LIMIT_MS);
          throw new Error('cut off');
        }
        await received.handler(batch);
      });
      const publisher = await start();
      await publisher.publish(TOPIC, [balanceUpdate('a', 1), balanceUpdate('a', 2)]);
      await entered.wait(WAIT_LIMIT_MS);
      await instances.store.cut(messages);
      finish.wake();
      await publisher.publish(TOPIC, [balanceUpdate('a', 3)]);
      await eventually(() => received.assertAllInOrder(['a'], 3), { timeoutMs: WAIT_LIMIT_MS });
    });

    it('loses and reorders nothing among 20,000 messages while all connections keep breaking', async () => {
      const received = new Received();
      await Promise.all([start(received.handler), start(received.handler)]);
      const publisher = await start();
      const tenants = Array.from({ length: 20 }, (_, index) => `t${index}`);
      const perCall = 20;
      for (let version = 1; version <= 1_000; version += perCall) {
        const versions = Array.from({ length: perCall }, (_, index) => version + index);
        const batch = versions.flatMap((each) => tenants.map((tenant) => balanceUpdate(tenant, each)));
        if (version % 200 === 1) await instances.store.cut();
        // A failed publish may have succeeded. Publishing again is up to the caller.
        await eventually(() => publisher.publish(TOPIC, batch));
      }
      await eventually(() => received.assertAllInOrder(tenants, 1_000), { timeoutMs: WAIT_LIMIT_MS, everyMs: 100 });
    });
  });
}
