import { sharedLookup } from '@tollgate/runtime';
import { buildConnector, Client } from 'undici';
import type { Backend } from '../../catalog/catalog';

declare module 'node:net' {
  interface Socket {
    /** Node has the last two; its types do not yet. */
    setKeepAlive(enable: boolean, initialDelayMs: number, intervalMs: number, count: number): this;
  }
}

/** Time limits of a call to a backend that has none of its own (`timeouts` in `tollgate.yaml`). */
export interface UpstreamLimits {
  connectTimeoutMs: number;
  /** Until the head of a plain answer. The backend sends it when all output is generated. */
  plainHeadTimeoutMs: number;
  /** Until the head of a stream. */
  streamHeadTimeoutMs: number;
  /** Between two chunks. */
  idleTimeoutMs: number;
  /** For all attempts of a plain request, from the first one. */
  plainTotalTimeoutMs: number;
  /**
   * For all attempts of a stream, from the first one. A client that reads slowly could otherwise keep its stream for
   * weeks, and metering keeps a month whose requests ended later than two days after it.
   */
  streamTotalTimeoutMs: number;
  /**
   * If a kept connection closes without an answer within this time, the backend was already closing it when the request
   * was sent. A 503 within this time was sent before any work: a later one may come from a proxy whose engine died
   * during the work. The limit is twice the time of a packet around the world. It is measured from before the request
   * is written, so a slow machine can mistake a stale connection for one that did work, never the reverse.
   */
  staleCloseMs: number;
}

export const DEFAULT_UPSTREAM_LIMITS: UpstreamLimits = {
  connectTimeoutMs: 5_000,
  plainHeadTimeoutMs: 600_000,
  streamHeadTimeoutMs: 120_000,
  idleTimeoutMs: 60_000,
  plainTotalTimeoutMs: 600_000,
  streamTotalTimeoutMs: 86_400_000,
  staleCloseMs: 250,
};

/**
 * Calls above the limit are refused. It must not be below the number of concurrent requests, as each stream holds a
 * connection.
 */
const MAX_CONNECTIONS_PER_ORIGIN = 16_384;
/** Connections kept open for the next request. */
const MAX_IDLE_PER_ORIGIN = 512;
const KEEP_ALIVE_MS = 30_000;
const KEEP_ALIVE_MAX_MS = 600_000;
/**
 * TCP keep-alive notices a backend that vanished without closing the connection, 5 s after its last packet, with or
 * without a request in progress. It does not work while sent bytes are unacknowledged: `net.ipv4.tcp_retries2` bounds
 * that case.
 */
const PROBE_AFTER_MS = 2_000;
const PROBE_INTERVAL_MS = 1_000;
const MAX_UNANSWERED_PROBES = 3;
/** Limit of an answer's head. */
const MAX_HEADER_BYTES = 16 * 1024;

/** Carries one request at a time. Reopens by itself after a close. */
export class Connection {
  readonly client: Client;
  /** A caller has given it back before. */
  used = false;
  /** The open connection has carried a complete answer. The backend may close it at any moment. */
  kept = false;
  /** The address of this machine from which it is open. */
  localAddress: string | null = null;

  constructor(to: ConnectionTarget, connectTimeoutMs: number) {
    const connect = connectorFor(to, connectTimeoutMs);
    this.client = new Client(to.origin, {
      pipelining: 1,
      allowH2: false,
      connect: (options, done) =>
        connect(options, (...result) => {
          this.localAddress = result[1]?.localAddress ?? null;
          done(...result);
        }),
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    this.client.on('disconnect', () => {
      this.kept = false;
      this.localAddress = null;
    });
  }
}

/** What a connection to a backend needs to know. Backends with the same key share connections. */
export type ConnectionTarget = Pick<Backend, 'connectionKey' | 'origin' | 'timeouts' | 'tls'>;

/** Opens connections to a backend. @param defaultTimeoutMs of a backend without its own limit */
export function connectorFor({ timeouts, tls }: ConnectionTarget, defaultTimeoutMs: number): buildConnector.connector {
  const timeout = timeouts.connectMs ?? defaultTimeoutMs;
  return probing(buildConnector({ timeout, lookup: sharedLookup, allowH2: false, ...tls }));
}

function probing(connect: buildConnector.connector): buildConnector.connector {
  return (options, done) => {
    try {
      connect(options, (...result) => {
        result[1]?.setKeepAlive(true, PROBE_AFTER_MS, PROBE_INTERVAL_MS, MAX_UNANSWERED_PROBES);
        done(...result);
      });
    } catch (error) {
      // Node throws at once if it cannot use the certificate or the key of the backend, for example half of a new pair.
      process.nextTick(done, error, null);
    }
  };
}

interface Open {
  idle: Connection[];
  open: Set<Connection>;
  /** The configuration has no such backend any more: a connection is closed after its call. */
  isGone: boolean;
}

/**
 * A stack of single connections per backend's origin (and TLS), last used first. undici's Pool searches all connections
 * for a free one, which costs 23 µs a call at 4,000 streams. A stack needs no search and lets surplus connections idle
 * out.
 */
export class Connections {
  private readonly byKey = new Map<string, Open>();

  constructor(private readonly connectTimeoutMs: number) {}

  /** A connection for one request, or null at the limit. The caller must `give` it back. */
  take(to: ConnectionTarget): Connection | null {
    let known = this.byKey.get(to.connectionKey);
    if (!known) this.byKey.set(to.connectionKey, (known = { idle: [], open: new Set(), isGone: false }));
    const connection = known.idle.pop();
    if (connection) return connection;
    if (known.open.size >= MAX_CONNECTIONS_PER_ORIGIN) return null;
    const opened = new Connection(to, this.connectTimeoutMs);
    known.open.add(opened);
    return opened;
  }

  give({ connectionKey }: ConnectionTarget, connection: Connection): void {
    const known = this.byKey.get(connectionKey);
    if (!known || connection.client.destroyed) return;
    connection.used = true;
    if (!known.isGone && known.idle.length < MAX_IDLE_PER_ORIGIN) {
      known.idle.push(connection);
      return;
    }
    closeIn(known, [connection]);
    if (known.isGone && known.open.size === 0) this.byKey.delete(connectionKey);
  }

  /** Closes the idle connections to all backends with other keys, and their other ones after their calls. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const [key, known] of this.byKey) {
      known.isGone = !keys.has(key);
      if (!known.isGone) continue;
      closeIn(known, known.idle.splice(0));
      if (known.open.size === 0) this.byKey.delete(key);
    }
  }

  /** Closes the idle connections that are open from these addresses. Returns their number. */
  closeIdle(localAddresses: readonly string[]): number {
    let closed = 0;
    for (const known of this.byKey.values()) {
      const isLost = ({ localAddress }: Connection) => localAddress !== null && localAddresses.includes(localAddress);
      const lost = known.idle.filter(isLost);
      known.idle = known.idle.filter((connection) => !isLost(connection));
      closeIn(known, lost);
      closed += lost.length;
    }
    return closed;
  }

  /** Closes all connections and aborts running calls. */
  async close(): Promise<void> {
    const connections = [...this.byKey.values()].flatMap(({ open }) => [...open]);
    this.byKey.clear();
    await Promise.all(connections.map(({ client }) => client.destroy()));
  }
}

function closeIn(known: Open, connections: readonly Connection[]): void {
  for (const connection of connections) {
    known.open.delete(connection);
    void connection.client.destroy();
  }
}
