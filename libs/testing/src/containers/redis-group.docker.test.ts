import { eventually } from '../eventually';
import { redisText } from './redis';
import { PRIMARY_NAME, useRedisCluster, useRedisSentinels } from './redis-group';

const FAILOVER_LIMIT_MS = 90_000;

describe('a Redis Cluster in containers', () => {
  const cluster = useRedisCluster({ nodeTimeoutMs: 2_000 });

  it('redirects to addresses that the host can reach, and accepts a killed node again', async () => {
    const [first, second] = cluster.nodes;
    if (!first || !second) throw new Error('the cluster has no nodes');
    const set = await first.server.exec(['redis-cli', '-p', String(first.port), 'SET', 'bar', '1']);
    expect(set).toMatch(/^OK|^MOVED \d+ 127\.0\.0\.1:\d+/);
    const addresses = (await redisText(first.port, 'CLUSTER NODES')).match(/127\.0\.0\.1:\d+/g);
    expect(addresses?.map((address) => Number(address.split(':')[1])).sort()).toEqual(
      cluster.nodes.map(({ port }) => port).sort(),
    );
    await second.server.kill();
    await eventually(async () => expect(await redisText(first.port, 'CLUSTER INFO')).toContain('cluster_state:fail'), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
    await second.server.start();
    await eventually(async () => expect(await redisText(first.port, 'CLUSTER INFO')).toContain('cluster_state:ok'), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
  });
});

describe('Redis with Sentinels in containers', () => {
  const group = useRedisSentinels();

  it('makes the replica the primary when the primary is killed', async () => {
    const [primaryPort, replicaPort, sentinelPort = 0] = group.network.ports;
    const primary = async (): Promise<string | undefined> =>
      new RegExp(`name=${PRIMARY_NAME},.*address=(\\S+?),`).exec(await redisText(sentinelPort, 'INFO sentinel'))?.[1];
    expect(await primary()).toBe(`127.0.0.1:${primaryPort}`);
    await group.primary.kill();
    await eventually(async () => expect(await primary()).toBe(`127.0.0.1:${replicaPort}`), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
  });
});
