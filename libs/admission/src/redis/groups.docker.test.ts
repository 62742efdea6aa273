import { UnavailableError } from '@tollgate/contracts';
import { RedisLink } from '@tollgate/redis';
import { configureLogging } from '@tollgate/runtime';
import {
  elapsedMs,
  eventually,
  leastMs,
  PRIMARY_NAME,
  redisText,
  useRedisCluster,
  useRedisSentinels,
} from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import {
  BALANCE,
  FAILOVER_LIMIT_MS,
  open,
  REFUSAL_LIMIT_MS,
  refusedAfterMs,
  refusedWithoutReplica,
} from './faults.fixture';

// Unavailable servers are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('a cluster', () => {
  const cluster = useRedisCluster({ nodeTimeoutMs: 2_000 });
  const url = () => `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;

  it('that lost a node serves the tenants of the other nodes at their usual speed', async () => {
    const { f, client, close } = await open({ url: url() });
    const tenants = Array.from({ length: 30 }, (_, i) => `${f.tenantId}${i}`);
    for (const tenantId of tenants) await f.setBalance(BALANCE, { tenantId });
    const admitAll = () =>
      Promise.all(tenants.map((tenantId) => client.admit(f.request({ tenantId })).catch((error: unknown) => error)));
    expect((await admitAll()).every((result) => (result as { kind?: string }).kind === 'held')).toBe(true);
    const { server } = cluster.nodes[2]!;
    // The other nodes continue without it, with `cluster-require-full-coverage no`.
    for (const node of cluster.nodes)
      await node.server.exec([
        'redis-cli',
        '-p',
        String(node.port),
        'CONFIG',
        'SET',
        'cluster-require-full-coverage',
        'no',
      ]);
    await server.pause();
    let first: unknown[] = [];
    let second: unknown[] = [];
    const firstMs = await elapsedMs(async () => void (first = await admitAll()));
    // The best of three, because the machine may be busy at one moment.
    const secondMs = await leastMs(REFUSAL_LIMIT_MS / 4, () => elapsedMs(async () => void (second = await admitAll())));
    await server.unpause();
    process.stderr.write(
      `a silent node of a cluster: first call ${firstMs.toFixed()} ms, then ${secondMs.toFixed()} ms\n`,
    );
    for (const results of [first, second]) {
      const refused = results.filter((result) => result instanceof UnavailableError);
      expect(refused.length).toBeGreaterThan(0);
      expect(refused.length).toBeLessThan(tenants.length);
      expect(
        results.filter((result) => !(result instanceof Error) && (result as { kind: string }).kind === 'held'),
      ).toHaveLength(tenants.length - refused.length);
    }
    expect(firstMs).toBeLessThan(REFUSAL_LIMIT_MS);
    expect(secondMs).toBeLessThan(REFUSAL_LIMIT_MS / 4);
    await eventually(async () => expect((await admitAll()).some((result) => result instanceof Error)).toBe(false), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
    await close();
  });

  it('that lost a node extends the holds of the other nodes once', async () => {
    const { f, client, close } = await open({ url: url() });
    const tenants = Array.from({ length: 30 }, (_, i) => `${f.tenantId}${i}`);
    const holds = await Promise.all(
      tenants.map(async (tenantId) => {
        await f.setBalance(BALANCE, { tenantId });
        return { tenantId, id: await f.hold({ tenantId, wantOutputTokens: 10 }) };
      }),
    );
    const extendAll = () =>
      Promise.all(
        holds.map((hold) =>
          client
            .extend({ ...hold, wantNanos: 5n * TOKEN_NANOS, minNanos: TOKEN_NANOS })
            .catch((error: unknown) => error as Error),
        ),
      );
    const { server } = cluster.nodes[1]!;
    await server.pause();
    const results = await extendAll();
    await server.unpause();
    const away = results.filter((result) => result instanceof UnavailableError);
    expect(away.length).toBeGreaterThan(0);
    expect(away.length).toBeLessThan(tenants.length);
    const extended = { kind: 'extended', grantedNanos: 5n * TOKEN_NANOS, holdNanos: 15n * TOKEN_NANOS };
    for (const [i, result] of results.entries()) {
      if (result instanceof UnavailableError) continue;
      expect(result).toEqual(extended);
      expect(await f.sums(tenants[i])).toMatchObject({ pendingNanos: extended.holdNanos });
    }
    await eventually(async () => expect((await extendAll()).some((result) => result instanceof Error)).toBe(false), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
    await close();
  });

  it('has a tenant’s keys in one slot, and stops sweeping a tenant only when no process serves it', async () => {
    const { f, close } = await open({ url: url() });
    await f.setBalance(BALANCE);
    await f.hold();
    const link = new RedisLink({ url: url(), name: 'test' });
    await link.start();
    const active = async () => {
      const keys = Array.from({ length: 16 }, (_, n) => `tga:{registry${n}}:active`);
      for (const key of keys) {
        const score = await link.one({ command: 'zscore', keys: [key], args: [f.tenantId] });
        if (score !== null) return { key, score: Number(score) };
      }
      return null;
    };
    const { key, score } = (await active())!;
    let minutes = 0;
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + minutes * 60_000);
    const sweepAfter = async (more: number) => {
      minutes += more;
      await f.sweep();
      return active();
    };
    expect(await sweepAfter(0)).not.toBeNull();
    expect(await sweepAfter(11)).not.toBeNull();
    // By a process whose clock is eleven minutes behind.
    await link.one({ command: 'zadd', keys: [key], args: [score - 660_000, f.tenantId] });
    await f.store.void([{ id: (await holdIds(link, f.tenantId))[0]!, tenantId: f.tenantId }]);
    expect(await sweepAfter(0)).not.toBeNull();
    expect(await sweepAfter(9)).not.toBeNull();
    expect(await sweepAfter(1)).toBeNull();
    jest.restoreAllMocks();
    expect(await f.store.snapshot({ tenantId: f.tenantId, limit: 1 })).toHaveLength(1);
    link.close();
    await close();
  });
});

describe('a cluster with replicas', () => {
  const cluster = useRedisCluster({ replicas: 1, nodeTimeoutMs: 2_000 });

  const url = () => `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  const replication = ({ port }: (typeof cluster.nodes)[0]) => redisText(port, 'INFO replication');

  it('refuses only settlements whose shard lacks its replica, where settlements wait for replicas', async () => {
    const { f, client, close } = await open({ url: url(), settledReplicas: 1 });
    const tenants = Array.from({ length: 30 }, (_, i) => `${f.tenantId}${i}`);
    for (const tenantId of tenants) await f.setBalance(BALANCE, { tenantId });
    const hold = async () => {
      const requests = tenants.map((tenantId) => f.request({ tenantId }));
      for (const request of requests) expect(await client.admit(request)).toMatchObject({ kind: 'held' });
      return requests;
    };
    const settle = (requests: Awaited<ReturnType<typeof hold>>) =>
      Promise.all(
        requests.map(({ draft: { id, tenantId } }) =>
          client.settle({ event: f.event(id, TOKEN_NANOS, { tenantId }) }).catch((error: unknown) => error),
        ),
      );
    const settled = (results: unknown[], more: { repeated?: boolean } = {}) =>
      expect(results).toEqual(results.map(() => expect.objectContaining({ kind: 'settled', ...more })));
    await eventually(
      async () => {
        for (const info of await Promise.all(cluster.nodes.map(replication)))
          expect(info).toMatch(/master_link_status:up|connected_slaves:1\b.*state=online/s);
      },
      { timeoutMs: FAILOVER_LIMIT_MS },
    );
    const warm = await hold();
    // A slow replica makes it a repeat.
    await eventually(async () => settled(await settle(warm)));
    const roles = await Promise.all(cluster.nodes.map(replication));
    const replica = cluster.nodes[roles.findIndex((info) => info.includes('role:slave'))]!;
    const requests = await hold();
    await replica.server.pause();
    const results = await settle(requests);
    const refused = results.filter((result) => result instanceof UnavailableError);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(tenants.length);
    settled(
      results.filter((result) => !(result instanceof Error)),
      { repeated: false },
    );
    await replica.server.unpause();
    await eventually(async () => settled(await settle(requests), { repeated: true }));
    await close();
  });

  it.each(['falls silent', 'dies'] as const)('goes on with the replica of a node that %s', async (fault) => {
    const { f, client, close } = await open({ url: url() });
    const tenants = Array.from({ length: 30 }, (_, i) => `${f.tenantId}${i}`);
    for (const tenantId of tenants) await f.setBalance(BALANCE, { tenantId });
    const admitAll = () =>
      Promise.all(tenants.map((tenantId) => client.admit(f.request({ tenantId })).catch((error: unknown) => error)));
    await admitAll();
    // A replica that has not yet copied its primary cannot take over. Redis waits 5 s before it begins to copy.
    const infos = await eventually(
      async () => {
        const all = await Promise.all(cluster.nodes.map(replication));
        expect(all.filter((one) => /master_link_status:down/.test(one))).toHaveLength(0);
        return all;
      },
      { timeoutMs: FAILOVER_LIMIT_MS },
    );
    const { server } = cluster.nodes[infos.findIndex((one) => /role:master\s+connected_slaves:1/.test(one))]!;
    await (fault === 'dies' ? server.kill() : server.pause());
    const from = performance.now();
    await eventually(
      async () => expect((await admitAll()).filter((result) => result instanceof Error)).toHaveLength(0),
      { timeoutMs: FAILOVER_LIMIT_MS },
    );
    process.stderr.write(`failover in a cluster whose node ${fault}: ${(performance.now() - from).toFixed()} ms\n`);
    await (fault === 'dies' ? server.start() : server.unpause());
    await close();
  });
});

async function holdIds(link: RedisLink, tenantId: string): Promise<string[]> {
  return (await link.one({ command: 'hkeys', keys: [`tga:{${tenantId}}:pending`], args: [] })) as string[];
}

describe('Redis with Sentinel', () => {
  const group = useRedisSentinels();
  const url = () => `redis+sentinel://${group.sentinels.map((port) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`;
  const offset = async (index: number) => {
    const info = await redisText(group.network.ports[index]!, 'INFO replication');
    return /(?:slave|master)_repl_offset:(\d+)/.exec(info)?.[1];
  };

  /** The replica has everything that the primary has. */
  const inStep = () =>
    eventually(async () => {
      const [primary, replica] = await Promise.all([offset(0), offset(1)]);
      expect(replica).toBe(primary);
    });

  it('acknowledges a settlement and a withdrawal only when the replica has it, where that is configured', async () => {
    const { f, client, close } = await open({ url: url(), settledReplicas: 1 });
    await f.setBalance(BALANCE);
    const [first, second] = [await f.hold(), await f.hold()];
    await inStep();
    // A slow replica makes it a repeat.
    const settling = () => client.settle({ event: f.event(first, TOKEN_NANOS) });
    await eventually(async () => expect(await settling()).toMatchObject({ kind: 'settled' }));
    // Redis writes pings of its own meanwhile, so the primary is asked first.
    const written = Number(await offset(0));
    expect(Number(await offset(1))).toBeGreaterThanOrEqual(written);
    const other = await open({ url: url(), settledReplicas: 1 });
    await group.replica.pause();
    await refusedWithoutReplica(() => client.settle({ event: f.event(second, TOKEN_NANOS) }));
    // Redis waits only for what the connection itself has written. A repeat may come on a new one.
    await refusedWithoutReplica(() => other.client.settle({ event: f.event(second, TOKEN_NANOS) }));
    await other.close();
    expect(await client.admit(f.request())).toMatchObject({ kind: 'held' });
    // Its version never arrives. Otherwise the books would give it back.
    const withdrawal = { tenantId: f.tenantId, version: 9n, nanos: 1n };
    await refusedWithoutReplica(() => f.store.withdraw(withdrawal));
    await group.replica.unpause();
    await eventually(async () => expect(await f.store.withdraw(withdrawal)).toEqual({ kind: 'withdrawn' }));
    await eventually(async () =>
      expect(await client.settle({ event: f.event(second, TOKEN_NANOS) })).toMatchObject({ repeated: true }),
    );
    await close();
  });

  it('continues with the replica when the primary is killed', async () => {
    const { f, client, close } = await open({ url: url() });
    await f.setBalance(BALANCE);
    await f.hold();
    // Replication is asynchronous: whatever has not reached the replica is lost with the primary.
    await inStep();
    await group.primary.kill();
    expect(await refusedAfterMs(() => client.admit(f.request()))).toBeLessThan(REFUSAL_LIMIT_MS);
    const from = performance.now();
    await eventually(async () => expect(await client.admit(f.request())).toMatchObject({ kind: 'held' }), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
    process.stderr.write(`failover by Sentinel: ${(performance.now() - from).toFixed()} ms\n`);
    expect(await f.sums()).toMatchObject({ balanceNanos: BALANCE });
    await close();
  });
});
