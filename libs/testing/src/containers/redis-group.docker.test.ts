import { eventually } from '../eventually';
import type { RedisServer } from './redis';
import { PRIMARY_NAME, useRedisCluster, useRedisSentinels } from './redis-group';

const FAILOVER_LIMIT_MS = 90_000;
const cli = (server: RedisServer, port: number, ...command: string[]): Promise<string> =>
  server.exec(['redis-cli', '-p', String(port), ...command]);

describe('a Redis Cluster in containers', () => {
  const cluster = useRedisCluster({ nodeTimeoutMs: 2_000 });

  it('redirects to addresses that the host can reach, and accepts a killed node again', async () => {
    const [first, second] = cluster.nodes;
    if (!first || !second) throw new Error('the cluster has no nodes');
    expect(await cli(first.server, first.port, 'SET', 'bar', '1')).toMatch(/^OK|^MOVED \d+ 127\.0\.0\.1:\d+/);
    const addresses = (await cli(first.server, first.port, 'CLUSTER', 'NODES')).match(/127\.0\.0\.1:\d+/g);
    expect(addresses?.map((address) => Number(address.split(':')[1])).sort()).toEqual(
      cluster.nodes.map(({ port }) => port).sort(),
    );
    await second.server.kill();
    await eventually(
      async () => expect(await cli(first.server, first.port, 'CLUSTER', 'INFO')).toContain('cluster_state:fail'),
      { timeoutMs: FAILOVER_LIMIT_MS },
    );
    await second.server.start();
    await eventually(
      async () => expect(await cli(first.server, first.port, 'CLUSTER', 'INFO')).toContain('cluster_state:ok'),
      { timeoutMs: FAILOVER_LIMIT_MS },
    );
  });
});

describe('Redis with Sentinels in containers', () => {
  const group = useRedisSentinels();

  it('makes the replica the primary when the primary is killed', async () => {
    const [primaryPort, replicaPort, sentinelPort = 0] = group.network.ports;
    const primary = (): Promise<string> =>
      cli(group.replica, sentinelPort, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', PRIMARY_NAME);
    expect(await primary()).toContain(String(primaryPort));
    await group.primary.kill();
    await eventually(async () => expect(await primary()).toContain(String(replicaPort)), {
      timeoutMs: FAILOVER_LIMIT_MS,
    });
  });
});
