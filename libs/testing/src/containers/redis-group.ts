import { eventually } from '../eventually';
import { imageOf } from './images';
import { redisNode, RedisServer } from './redis';
import { READY_TIMEOUT_MS, TestContainer } from './test-container';

// Several servers that tell clients each other's addresses must have addresses that hold for the host as well as among
// themselves. So all live in one container's network, on different ports, which are published under the same numbers:
// 127.0.0.1:<port> is right from both sides, and no client needs a map.

const NODES = 3;
const SENTINELS = 3;
/** A node that a busy machine holds up is not taken for one that is away. */
const NODE_TIMEOUT_MS = 15_000;
const DOWN_AFTER_MS = 3_000;
const FAILOVER_TIMEOUT_MS = 3_000;
export const PRIMARY_NAME = 'tollgate';

/** The network that the servers live in; it runs nothing. */
function networkHolder(portCount: number): TestContainer {
  return new TestContainer((ports) => ({ image: imageOf('REDIS'), command: ['sleep', 'infinity'], ports }), portCount);
}

function inside(network: TestContainer, port: number, args: string[]): RedisServer {
  return new RedisServer(() => ({ ...redisNode(port, args), networkOf: network }), 0);
}

export interface RedisClusterOptions {
  /** Of each of the 3 primaries; default 0. */
  replicas?: number;
  /** A node that was silent for so long has failed; short where that is the subject. */
  nodeTimeoutMs?: number;
}

/**
 * `network.disconnect()` cuts all of them off from the host, not from each other; each node can be paused, killed,
 * stopped and started.
 */
export interface RedisCluster {
  nodes: { port: number; server: RedisServer }[];
  network: TestContainer;
}

/** A real Redis Cluster of 3 primaries for the calling test file. `nodes` are filled by beforeAll. */
export function useRedisCluster({
  replicas = 0,
  nodeTimeoutMs = NODE_TIMEOUT_MS,
}: RedisClusterOptions = {}): RedisCluster {
  const count = NODES * (1 + replicas);
  const network = networkHolder(count);
  const cluster: RedisCluster = { nodes: [], network };
  beforeAll(async () => {
    await network.create();
    cluster.nodes.push(
      ...network.ports.map((port) => ({ port, server: inside(network, port, clusterArgs(port, nodeTimeoutMs)) })),
    );
    await Promise.all(cluster.nodes.map(({ server }) => server.create()));
    const [first] = cluster.nodes;
    const addresses = network.ports.map((port) => `127.0.0.1:${port}`);
    await first?.server.exec([
      'redis-cli',
      '--cluster',
      'create',
      ...addresses,
      '--cluster-replicas',
      String(replicas),
      '--cluster-yes',
    ]);
    await Promise.all(cluster.nodes.map(({ port, server }) => agreed(server, port, count)));
  });
  afterAll(() =>
    removeAll(
      cluster.nodes.map(({ server }) => server),
      network,
    ),
  );
  return cluster;
}

function clusterArgs(port: number, nodeTimeoutMs: number): string[] {
  const announced = ['--cluster-announce-ip', '127.0.0.1', '--cluster-announce-port', String(port)];
  return [
    '--appendonly',
    'yes',
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    String(nodeTimeoutMs),
    ...announced,
  ];
}

async function agreed(server: RedisServer, port: number, count: number): Promise<void> {
  await eventually(
    async () => {
      const info = await server.exec(['redis-cli', '-p', String(port), 'CLUSTER', 'INFO']);
      if (!info.includes('cluster_state:ok') || !info.includes(`cluster_known_nodes:${count}`)) throw new Error(info);
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}

export interface RedisSentinels {
  /** Ports of the sentinels; `PRIMARY_NAME` is what they watch. */
  sentinels: number[];
  primary: RedisServer;
  replica: RedisServer;
  network: TestContainer;
}

/**
 * A primary, a replica and three sentinels for the calling test file: a failover takes some 4 s. `sentinels` are filled
 * by beforeAll.
 */
export function useRedisSentinels(): RedisSentinels {
  const network = networkHolder(2 + SENTINELS);
  const portOf = (index: number): number => network.ports[index] ?? 0;
  const member = (index: number, args: () => string[]): RedisServer =>
    new RedisServer(() => ({ ...redisNode(portOf(index), ['--appendonly', 'yes', ...args()]), networkOf: network }), 0);
  const announced = (index: number): string[] => [
    '--replica-announce-ip',
    '127.0.0.1',
    '--replica-announce-port',
    String(portOf(index)),
  ];
  const primary = member(0, () => announced(0));
  const replica = member(1, () => [...announced(1), '--replicaof', '127.0.0.1', String(portOf(0))]);
  const watchers = Array.from(
    { length: SENTINELS },
    (_, index) => new RedisServer(() => ({ ...sentinelNode(portOf(2 + index), portOf(0)), networkOf: network }), 0),
  );
  const group: RedisSentinels = { sentinels: [], primary, replica, network };
  beforeAll(async () => {
    await network.create();
    await primary.create();
    await replica.create();
    await Promise.all(watchers.map((watcher) => watcher.create()));
    group.sentinels.push(...network.ports.slice(2));
    await Promise.all(watchers.map((watcher, index) => complete(watcher, portOf(2 + index))));
  });
  afterAll(() => removeAll([...watchers, replica, primary], network));
  return group;
}

function sentinelNode(port: number, primaryPort: number) {
  const settings = [
    `port ${port}`,
    'protected-mode no',
    'sentinel announce-ip 127.0.0.1',
    `sentinel announce-port ${port}`,
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${PRIMARY_NAME} ${FAILOVER_TIMEOUT_MS}`,
  ];
  // It writes what it learns into its own file.
  const start =
    `[ -e /data/sentinel.conf ] || printf '${settings.join('\\n')}\\n' >/data/sentinel.conf; ` +
    'exec redis-server /data/sentinel.conf --sentinel';
  return { ...redisNode(port, []), command: ['sh', '-c', start] };
}

/** It knows the replica and the other sentinels, so that it can lead a failover. */
async function complete(watcher: RedisServer, port: number): Promise<void> {
  await eventually(
    async () => {
      const known = await watcher.exec(['redis-cli', '-p', String(port), 'SENTINEL', 'MASTER', PRIMARY_NAME]);
      const [, slaves, others] = /num-slaves\s+(\d+)\s+num-other-sentinels\s+(\d+)/.exec(known) ?? [];
      if (slaves !== '1' || others !== String(SENTINELS - 1)) throw new Error(known);
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}

/** The network last: a container whose network is gone cannot be removed in order. */
async function removeAll(servers: TestContainer[], network: TestContainer): Promise<void> {
  await Promise.all(servers.map((server) => server.remove()));
  await network.remove();
}
