import { eventually } from '../eventually';
import { imageOf } from './images';
import { redisNode, RedisServer, redisText } from './redis';
import { READY_TIMEOUT_MS, TestContainer } from './test-container';

// These servers tell clients the addresses of each other, so the host and the servers must reach each other at the same
// addresses. All of them share the network of one container, on different ports that are published with the same
// numbers. 127.0.0.1:<port> is correct on both sides, and no client needs to map addresses.

const NODES = 3;
const SENTINELS = 3;
/** Long enough that a slow node is not considered down. */
const NODE_TIMEOUT_MS = 15_000;
const DOWN_AFTER_MS = 3_000;
const FAILOVER_TIMEOUT_MS = 3_000;
export const PRIMARY_NAME = 'tollgate';

/** A container that only provides the network of the servers. */
function networkHolder(portCount: number): TestContainer {
  return new TestContainer((ports) => ({ image: imageOf('REDIS'), command: ['sleep', 'infinity'], ports }), portCount);
}

function inside(network: TestContainer, port: number, args: string[]): RedisServer {
  return new RedisServer(() => ({ ...redisNode(port, args), networkOf: network }), 0);
}

export interface RedisClusterOptions {
  /** Replicas of each of the 3 primaries. */
  replicas?: number;
  /** A node that is silent for this time has failed. Short in tests of failures. */
  nodeTimeoutMs?: number;
}

/**
 * `network.disconnect()` cuts all nodes off from the host, but not from each other. Each node can be paused, killed,
 * stopped and started.
 */
export interface RedisCluster {
  nodes: { port: number; server: RedisServer }[];
  network: TestContainer;
}

/** Starts a real Redis Cluster of 3 primaries for the calling test file. `beforeAll` fills `nodes`. */
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
    await Promise.all(cluster.nodes.map(({ port }) => agreed(port, count)));
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

async function agreed(port: number, count: number): Promise<void> {
  await eventually(
    async () => {
      const info = await redisText(port, 'CLUSTER INFO');
      if (!info.includes('cluster_state:ok') || !info.includes(`cluster_known_nodes:${count}`)) throw new Error(info);
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}

export interface RedisSentinels {
  /** Ports of the sentinels. They watch the primary `PRIMARY_NAME`. */
  sentinels: number[];
  primary: RedisServer;
  replica: RedisServer;
  network: TestContainer;
}

/**
 * Starts a primary, a replica and three sentinels for the calling test file. A failover takes about 4 s. `beforeAll`
 * fills `sentinels`.
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
    await Promise.all(group.sentinels.map(complete));
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
  // A sentinel writes its state into its configuration file, so a restart must keep the file.
  const start =
    `[ -e /data/sentinel.conf ] || printf '${settings.join('\\n')}\\n' >/data/sentinel.conf; ` +
    'exec redis-server /data/sentinel.conf --sentinel';
  return { ...redisNode(port, []), command: ['sh', '-c', start] };
}

/** Waits until the sentinel knows the replica and the other sentinels, which a failover needs. */
async function complete(port: number): Promise<void> {
  await eventually(
    async () => {
      const info = await redisText(port, 'INFO sentinel');
      if (!info.includes(`name=${PRIMARY_NAME},`) || !info.includes(`slaves=1,sentinels=${SENTINELS}`))
        throw new Error(info);
    },
    { timeoutMs: READY_TIMEOUT_MS },
  );
}

/** Removes the network last: a container cannot be removed in order after its network. */
async function removeAll(servers: TestContainer[], network: TestContainer): Promise<void> {
  await Promise.all(servers.map((server) => server.remove()));
  await network.remove();
}
