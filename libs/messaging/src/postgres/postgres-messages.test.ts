import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UnavailableError, type BalanceUpdate } from '@tollgate/contracts';
import { startEmbeddedPostgres } from '@tollgate/postgres';
import { WakeableDelay } from '@tollgate/runtime';
import { assertRuns, elapsedMs, eventually, inForceAfterMs, leastMs, useTestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import { messagesSuite } from '../messages.suite';
import { balanceUpdate, Received, SUITE_GROUP, TOPIC } from '../messages-store.fixture';
import { requestsSuite } from '../requests.suite';
import { PostgresMessages } from './postgres-messages';
import { PostgresStore } from './test-store.fixture';

const database = useTestDatabase();
const createStore = async () => new PostgresStore(database);

messagesSuite('Postgres', createStore);
requestsSuite('Postgres', 'same-instance', createStore);

describe('PostgresMessages', () => {
  let store: PostgresStore;
  let opened: PostgresMessages[];
  beforeEach(() => {
    store = new PostgresStore(database);
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((messages) => messages.close()));
    await store.close();
  });
  async function start(handler?: (messages: readonly BalanceUpdate[]) => Promise<void>) {
    const messages = store.open();
    opened.push(messages);
    if (handler) messages.consume(TOPIC, SUITE_GROUP, handler);
    await messages.start();
    return messages;
  }

  it('keeps nothing of acknowledged messages, so the table does not grow', async () => {
    const received = new Received();
    const messages = await start(received.handler);
    for (let version = 1; version <= 10; version++) await messages.publish(TOPIC, [balanceUpdate('a', version)]);
    await eventually(() => received.assertAllInOrder(['a'], 10));
    await eventually(async () => {
      const rows = await database.query(`SELECT 1 FROM ${store.schema}.batch WHERE queue = $1`, [
        `${TOPIC}.${SUITE_GROUP}`,
      ]);
      expect(rows).toHaveLength(0);
    });
  });

  it('quarantines a row that is not a batch of messages', async () => {
    const received = new Received();
    const messages = await start(received.handler);
    for (const data of [null, [], { messages: 'none' }]) await store.insert(`${TOPIC}.${SUITE_GROUP}`, data);
    await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(await store.dead(TOPIC, SUITE_GROUP)).toHaveLength(3);
  });

  it('quarantines a message that is nested too deeply to be written, and handles the next one', async () => {
    const received = new Received();
    const messages = await start(received.handler);
    // PostgreSQL stores it, and JSON.parse reads it.
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    await store.insertText(`${TOPIC}.${SUITE_GROUP}`, `{"messages":[{"id":"msg_1","v":9,"at":"","deep":${deep}}]}`);
    await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(
      await database.query(`SELECT reason, replace(message ->> 'deep', ' ', '') AS deep FROM ${store.schema}.dead`),
    ).toEqual([{ reason: expect.stringContaining('version 9'), deep }]);
  });

  it('quarantines a message once, also when its batch is redelivered', async () => {
    const entered = new WakeableDelay();
    const first = await start(async () => {
      entered.wake();
      throw new Error('always');
    });
    await store.insert(`${TOPIC}.${SUITE_GROUP}`, {
      messages: ['unreadable', { id: 'm', v: 1, at: '', data: balanceUpdate('a', 1) }],
    });
    await entered.wait(60_000);
    await first.close();
    const received = new Received();
    await start(received.handler);
    await eventually(() => received.assertAllInOrder(['a'], 1));
    expect(await store.dead(TOPIC, SUITE_GROUP)).toHaveLength(1);
  });

  it('reads a backlog of many megabytes in parts and in order', async () => {
    const publisher = await start();
    const releases = Array.from({ length: 12 }, () => randomBytes(16).toString('hex'));
    for (let version = 1; version <= 9_000; version += 300) {
      const batch = Array.from({ length: 300 }, (_, index) => ({
        ...balanceUpdate('a', version + index),
        releases: releases.map((id) => `${id}${version + index}`),
      }));
      await publisher.publish(TOPIC, batch);
    }
    const received = new Received();
    await start(received.handler);
    await eventually(() => received.assertAllInOrder(['a'], 9_000), { timeoutMs: 60_000 });
    expect(received.messages).toHaveLength(9_000);
  });

  it('keeps the order of a backlog with more rows than one read takes', async () => {
    const rows = 1_200;
    const received = new Received();
    const messages = store.open();
    opened.push(messages);
    const publisher = await start();
    await database.query(
      `INSERT INTO ${store.schema}.batch (queue, data)
       SELECT $1, json_build_object('messages', json_build_array(json_build_object(
           'id', 'msg', 'v', 1, 'at', '2026-01-01T00:00:00.000Z',
          'data', $2::jsonb || jsonb_build_object('version', n::text))))
       FROM generate_series(1, $3::int) AS n ORDER BY n`,
      [`${TOPIC}.${SUITE_GROUP}`, JSON.stringify(balanceUpdate('a', 0)), rows],
    );
    await publisher.publish(TOPIC, [balanceUpdate('a', rows + 1)]);
    messages.consume(TOPIC, SUITE_GROUP, received.handler);
    await messages.start();
    await eventually(() => received.assertAllInOrder(['a'], rows + 1));
  });

  it('publishes from more callers at once than it has connections, right after the start', async () => {
    const received = new Received();
    const messages = await start(received.handler);
    const tenants = Array.from({ length: 50 }, (_, index) => `t${index}`);
    const publishedMs = await elapsedMs(() =>
      Promise.all(tenants.map((tenant) => messages.publish(TOPIC, [balanceUpdate(tenant, 1)]))),
    );
    expect(publishedMs).toBeLessThan(3_000); // with a missing connection it would be the pool's 5 s
    await eventually(() => received.assertAllInOrder(tenants, 1));
  });

  it('takes over within a second from a process that is killed', async () => {
    const publisher = await start();
    let tenant = 'a';
    const tookMs = await leastMs(1_000, async () => {
      tenant += 'a';
      const victim = await store.spawnConsumer(0);
      await publisher.publish(TOPIC, [balanceUpdate(tenant, 1)]);
      await eventually(() => expect(victim.batches.flat()).toEqual(['1']));
      const received = new Received();
      const successor = await start(received.handler);
      // It is a standby: its session has tried to get the lock.
      await eventually(async () => {
        const standby = await database.query(
          `SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND state = 'idle' AND query LIKE '%pg_try_advisory_lock%'`,
        );
        expect(standby).toHaveLength(1);
      });
      const killed = victim.kill();
      const took = await inForceAfterMs(() => received.assertAllInOrder([tenant], 1));
      await killed;
      await successor.stopConsuming();
      return took;
    });
    expect(tookMs).toBeLessThan(1_000);
  });

  it('keeps the order of every key with random publishers, batch sizes, failures and broken connections', async () => {
    const step = fc.record({
      publisher: fc.nat({ max: 1 }),
      sizes: fc.array(fc.nat({ max: 40 }), { minLength: 3, maxLength: 3 }),
      failures: fc.nat({ max: 2 }),
      cut: fc.nat({ max: 9 }).map((n) => n === 0),
    });
    await assertRuns(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const received = new Received();
        let failures = 0;
        const handler = async (batch: readonly BalanceUpdate[]) => {
          if (failures > 0) {
            failures--;
            throw new Error('a random failure');
          }
          await received.handler(batch);
        };
        const instances = [await start(handler), await start(handler)];
        const published = [0, 0, 0];
        for (const { publisher, sizes, failures: more, cut } of steps) {
          // Independent of one another: many failures of one batch in a row only test the backoff, which grows.
          failures = Math.max(failures, more);
          const batch = sizes.flatMap((size, key) =>
            Array.from({ length: size }, () => balanceUpdate(`t${key}`, ++published[key]!)),
          );
          if (cut) await store.cut();
          await eventually(() => instances[publisher]!.publish(TOPIC, batch));
        }
        for (const [key, count] of published.entries()) {
          if (count > 0) await eventually(() => received.assertAllInOrder([`t${key}`], count));
        }
        await Promise.all(instances.map((messages) => messages.close()));
      }),
      { leastRuns: 3, mostRuns: 8, timeBoxMs: 15_000, seed: 20261121 },
    );
  });
});

describe('PostgresMessages and its server', () => {
  it('refuses to publish while the server is down, and recovers by itself when it is back', async () => {
    const dataDirectory = await mkdtemp(join(tmpdir(), 'tollgate-messages-'));
    const settings = { fsync: 'off' };
    let server = await startEmbeddedPostgres({ dataDirectory, settings });
    const messages = new PostgresMessages({ url: server.url, applicationName: 'test' });
    try {
      const received = new Received();
      messages.consume(TOPIC, SUITE_GROUP, received.handler);
      await messages.start();
      await messages.publish(TOPIC, [balanceUpdate('a', 1)]);
      await eventually(() => received.assertAllInOrder(['a'], 1));
      await server.stop();
      const error = await messages.publish(TOPIC, [balanceUpdate('a', 2)]).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UnavailableError);
      expect((error as Error).message).toMatch(/cannot be reached/);
      server = await startEmbeddedPostgres({ dataDirectory, settings });
      await eventually(() => messages.publish(TOPIC, [balanceUpdate('a', 2)]));
      await eventually(() => received.assertAllInOrder(['a'], 2));
    } finally {
      await messages.close();
      await server.stop();
      await rm(dataDirectory, { recursive: true });
    }
  });

  it('reports an error from start, and closes, when there is no server at all', async () => {
    const messages = new PostgresMessages({ url: 'postgres://nobody@127.0.0.1:1/none', applicationName: 'test' });
    messages.consume(TOPIC, SUITE_GROUP, async () => {});
    await expect(messages.start()).rejects.toThrow(/ECONNREFUSED/);
    await messages.close();
  });
});
