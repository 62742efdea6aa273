import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { UnavailableError } from '@tollgate/contracts';
import { elapsedMs, eventually, useRedis, useRedisCluster } from '@tollgate/testing';
import { Cluster } from 'ioredis';
import { functionLibrary } from './function-library';
import type { Call } from './call';
import { RedisLink } from './redis-link';
import { slotOf } from './slot';

const library = functionLibrary(
  'test',
  "redis.register_function({ function_name = LIBRARY .. '_hello', callback = function() return 'hello' end })",
);
const hello = (key: string): Call => ({ function: 'hello', keys: [key], args: [] });
/** Longer than in production, for a busy machine. */
const CALL_LIMIT_MS = 4_000;
/** No call takes its time twice. */
const REFUSAL_LIMIT_MS = CALL_LIMIT_MS + 1_000;

/** The port of the master of the key. */
function masterOf({ client }: RedisLink, key: string): number {
  return client instanceof Cluster ? Number(client.slots[slotOf(key)]![0]!.split(':')[1]) : 0;
}

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const tookMs = await elapsedMs(() => work);
  return [await work, tookMs];
}

describe('functions that are missing', () => {
  const redis = useRedis();

  it('are loaded within the time of the call, however slow the server', async () => {
    let delayMs = 0;
    const sockets = new Set<{ destroy(): void }>();
    const proxy = createServer((client) => {
      const server = connect(redis.port, '127.0.0.1');
      for (const socket of [client, server]) sockets.add(socket.on('error', () => {}).setNoDelay(true));
      client.pipe(server);
      // In order, also when the delay has become shorter.
      let sent: Promise<unknown> = Promise.resolve();
      server.on('data', (bytes) => {
        const due = Promise.all([sent, setTimeout(delayMs)]);
        sent = due.then(() => client.writable && client.write(bytes));
      });
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const link = new RedisLink({
      url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      ...{ name: 'loading-test', library, callTimeoutMs: CALL_LIMIT_MS },
    });
    try {
      await link.start();
      await redis.exec(['redis-cli', '-p', String(redis.port), 'FUNCTION', 'FLUSH']);
      delayMs = CALL_LIMIT_MS * 0.6;
      const [[refused], firstMs] = await timed(link.call([hello('a')]));
      expect(refused).toBeInstanceOf(UnavailableError);
      expect(firstMs).toBeLessThan(REFUSAL_LIMIT_MS);
      // It was loaded all the same.
      delayMs = CALL_LIMIT_MS * 0.1;
      expect(await link.call([hello('a')])).toEqual(['hello']);
      await redis.exec(['redis-cli', '-p', String(redis.port), 'FUNCTION', 'FLUSH']);
      expect(await link.call([hello('a')])).toEqual(['hello']);
    } finally {
      link.close();
      for (const socket of sockets) socket.destroy();
      proxy.close();
    }
  });
});

describe('a cluster whose slots move to a master that lacks the functions', () => {
  const cluster = useRedisCluster();

  it.each(['ASK', 'MOVED'])('loads them there, and answers a call that is redirected by %s', async (by) => {
    const link = new RedisLink({
      url: `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      ...{ name: 'moving-test', library },
    });
    try {
      await link.start();
      const key = `moving-${by}`;
      expect(await link.call([hello(key)])).toEqual(['hello']);
      const from = cluster.nodes.find(({ port }) => port === masterOf(link, key))!;
      const to = cluster.nodes.find((node) => node !== from)!;
      const cli = async ({ port, server }: typeof to, ...command: string[]) =>
        (await server.exec(['redis-cli', '-p', String(port), ...command])).trim();
      const [fromId, toId] = [await cli(from, 'CLUSTER', 'MYID'), await cli(to, 'CLUSTER', 'MYID')];
      const setSlot = (node: typeof to, ...how: string[]) =>
        cli(node, 'CLUSTER', 'SETSLOT', String(slotOf(key)), ...how);
      await cli(to, 'FUNCTION', 'FLUSH');
      await setSlot(to, 'IMPORTING', fromId);
      await setSlot(from, 'MIGRATING', toId);
      if (by === 'MOVED') for (const node of [to, from]) await setSlot(node, 'NODE', toId);
      expect(await link.call([hello(key)])).toEqual(['hello']);
    } finally {
      link.close();
    }
  });
});

describe('a cluster with a silent node', () => {
  const cluster = useRedisCluster({ nodeTimeoutMs: 2_000 });

  it('loads missing functions and lets others start; the silent node gets them when it answers', async () => {
    const urlOf = (nodes: { port: number }[]) =>
      `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
    const url = urlOf(cluster.nodes);
    const [one, , silent] = cluster.nodes;
    const cli = ({ port, server }: NonNullable<typeof one>, ...command: string[]) =>
      server.exec(['redis-cli', '-p', String(port), ...command]);
    for (const node of cluster.nodes) await cli(node, 'CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
    const keys = Array.from({ length: 30 }, (_, index) => `key${index}`);
    const link = new RedisLink({ url, name: 'loading-test', library, callTimeoutMs: CALL_LIMIT_MS });
    let late: RedisLink | undefined;
    // A client that asks the silent node first for the slots has no time left to ask another. It starts at the next
    // try.
    const startLate = async () => {
      const tried = new RedisLink({
        url: urlOf(cluster.nodes.slice(0, 2)),
        ...{ name: 'late-test', library, callTimeoutMs: CALL_LIMIT_MS },
      });
      try {
        await tried.start();
        return tried;
      } catch (error) {
        tried.close();
        throw error;
      }
    };
    try {
      await link.start();
      expect(await link.call(keys.map(hello))).toEqual(keys.map(() => 'hello'));
      await cli(one!, 'FUNCTION', 'FLUSH');
      await cli(silent!, 'FUNCTION', 'FLUSH');
      await silent!.server.pause();
      const [replies, tookMs] = await timed(link.call(keys.map(hello)));
      const refused = replies.filter((reply) => reply instanceof UnavailableError).length;
      expect(replies.filter((reply) => reply === 'hello')).toHaveLength(keys.length - refused);
      expect(refused).toBe(keys.filter((key) => masterOf(link, key) === silent!.port).length);
      expect(tookMs).toBeLessThan(REFUSAL_LIMIT_MS);
      const started = (late = await eventually(startLate, { timeoutMs: 60_000 }));
      const again = await late.call(keys.map(hello));
      expect(again.filter((reply) => reply === 'hello')).toHaveLength(keys.length - refused);
      await silent!.server.unpause();
      await eventually(async () => expect(await started.call(keys.map(hello))).toEqual(keys.map(() => 'hello')));
    } finally {
      link.close();
      late?.close();
    }
  });
});
