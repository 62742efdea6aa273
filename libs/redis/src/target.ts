import { fileProblem, problemsOfTls } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';
import { Cluster, Redis, type RedisOptions } from 'ioredis';

/**
 * A service that cannot reach Redis reports it within a second: for connecting, and for reading the cluster's slots.
 */
const CONNECT_TIMEOUT_MS = 500;
const RECONNECT_DELAY_MS = 100;
/**
 * For a connection that sends nothing, such as one that only listens: a dead server is noticed after 10 s. Calls have
 * much shorter limits.
 */
const KEEP_ALIVE_MS = 5_000;
/** A dead server does not answer QUIT. */
const DISCONNECT_TIMEOUT_MS = 100;
/** The interval of polls while Redis loads its data after a restart. */
const LOADING_RETRY_MS = 100;
/** In a cluster: how often a command follows a moving slot, or is repeated around a failed node. */
const MAX_REDIRECTIONS = 5;
const REDIRECTION_DELAY_MS = 50;
const MAX_PORT = 65_535;
const DEFAULT_PORT = 6379;
const DEFAULT_SENTINEL_PORT = 26379;

export type RedisClient = Redis | Cluster;

/** host:port of a node in the cluster's view → its address from here. */
export type NatMap = Record<string, { host: string; port: number }>;

export interface RedisTarget {
  kind: 'single' | 'sentinel' | 'cluster';
  /** The server, the sentinels, or some nodes of the cluster. */
  nodes: { host: string; port: number }[];
  username: string | undefined;
  password: string | undefined;
  /** Sentinel: the name of the master. */
  master: string;
  db: number;
  tls: { ca?: string } | undefined;
  sentinelPassword: string | undefined;
}

const FORMS =
  'redis://user:password@host:6379/0, redis+sentinel://user:password@host:26379,host:26379/master or ' +
  'redis+cluster://user:password@host:6379,host:6379 (rediss… for TLS, ?ca=file for its certificate authority)';

/**
 * Reads one URL: a single server, Sentinel or Cluster; `rediss…` for TLS; user and password come from the ACL. Query:
 * `ca` (file with the certificate authority, PEM), `sentinelPassword`. Throws an Error that names the forms and never
 * contains the password.
 */
export function readRedisUrl(url: string): RedisTarget {
  const match = /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url);
  if (!match) throw new Error(`REDIS_URL: it must have one of these forms: ${FORMS}`);
  const [, secure, form, credentials, hosts, path = '', query] = match;
  const kind = (form ?? 'single') as RedisTarget['kind'];
  const nodes = hosts!.split(',').map((node) => readNode(node, kind));
  const [username = '', ...password] = (credentials ?? '').split(':');
  const options = new URLSearchParams(query);
  for (const name of options.keys())
    if (name !== 'ca' && name !== 'sentinelPassword') throw new Error(`REDIS_URL: unknown option "${name}"`);
  if (!secure && options.has('ca'))
    throw new Error('REDIS_URL: "ca" has no effect without TLS: write rediss instead of redis');
  if (kind === 'single' && nodes.length > 1) throw new Error(`REDIS_URL: several hosts need one of ${FORMS}`);
  if (kind === 'sentinel' && !path) throw new Error('REDIS_URL: the name of the master is missing after the sentinels');
  if (kind === 'cluster' && path && path !== '0') throw new Error('REDIS_URL: a cluster has only database 0');
  if (kind === 'single' && !/^\d*$/.test(path)) throw new Error('REDIS_URL: the database must be a number');
  return {
    kind,
    nodes,
    username: username ? decodePercents(username) : undefined,
    password: password.length > 0 ? decodePercents(password.join(':')) : undefined,
    master: kind === 'sentinel' ? path : '',
    db: kind === 'single' ? Number(path) : 0,
    tls: secure ? readTls(options.get('ca')) : undefined,
    sentinelPassword: options.get('sentinelPassword') ?? undefined,
  };
}

/**
 * A client without a connection yet. It reconnects by itself, sends nothing twice, and refuses calls at once while it
 * has no connection. `name` is shown in Redis's CLIENT LIST.
 */
export function openClient(target: RedisTarget, name: string, natMap?: NatMap): RedisClient {
  const { username, password, tls, nodes, sentinelPassword } = target;
  const common: RedisOptions = {
    connectionName: name,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: KEEP_ALIVE_MS,
    maxLoadingRetryTime: LOADING_RETRY_MS,
    autoResendUnfulfilledCommands: false,
    // A listener subscribes when the connection is ready, and gets a refusal there.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    disableClientInfo: true,
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(tls ? { tls } : {}),
  };
  if (target.kind === 'cluster') {
    return new Cluster(nodes, {
      lazyConnect: true,
      redisOptions: common,
      clusterRetryStrategy: () => RECONNECT_DELAY_MS,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      // Not by a timer, which outlives the client in ioredis 5. MOVED reports a moved slot, and the breaker notices a
      // silent shard.
      slotsRefreshInterval: 0,
      maxRedirections: MAX_REDIRECTIONS,
      retryDelayOnFailover: REDIRECTION_DELAY_MS,
      retryDelayOnClusterDown: REDIRECTION_DELAY_MS,
      // A certificate names the host, so the host is not resolved here.
      ...(tls ? { dnsLookup: (host: string, done: (error: null, address: string) => void) => done(null, host) } : {}),
      ...(natMap ? { natMap } : {}),
    });
  }
  const single: RedisOptions = {
    ...common,
    db: target.db,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: () => RECONNECT_DELAY_MS,
    // After a failover the old master may remain, read-only. Look for the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  if (target.kind === 'single') return new Redis({ ...single, ...nodes[0] });
  return new Redis({
    ...single,
    sentinels: nodes,
    name: target.master,
    sentinelRetryStrategy: () => RECONNECT_DELAY_MS,
    ...(sentinelPassword ? { sentinelPassword } : {}),
    ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: tls } : {}),
  });
}

/** Without user and password, for messages. */
export function describeTarget({ kind, nodes, master, tls }: RedisTarget): string {
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`).join(',');
  return `redis${tls ? 's' : ''}${kind === 'single' ? '' : `+${kind}`}://${hosts}${master && `/${master}`}`;
}

function readNode(node: string, kind: RedisTarget['kind']): { host: string; port: number } {
  const match = /^(\[[0-9a-f:]+\]|[^:@]+)(?::(\d{1,5}))?$/i.exec(node);
  const port = Number(match?.[2] ?? (kind === 'sentinel' ? DEFAULT_SENTINEL_PORT : DEFAULT_PORT));
  // The text may be a part of the password.
  if (!match || port > MAX_PORT)
    throw new Error('REDIS_URL: a host is not host:port; in user and password, / is %2F and @ is %40');
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}

function decodePercents(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The error of decodeURIComponent does not name the setting. The text is a secret.
    throw new Error('REDIS_URL: in user and password, "%" is written as "%25"');
  }
}

function readTls(ca: string | null): { ca?: string } {
  if (!ca) return {};
  let text: string;
  try {
    text = readFileSync(ca, 'utf8');
  } catch (error) {
    throw new Error(`REDIS_URL: the file of "ca" "${ca}" cannot be read (${fileProblem(error)})`, { cause: error });
  }
  const [problem] = problemsOfTls({ ca: text });
  if (problem) throw new Error(`REDIS_URL: the file of "ca" ${problem.message}`);
  return { ca: text };
}
