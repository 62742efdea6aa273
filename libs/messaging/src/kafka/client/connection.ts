import net from 'node:net';
import tls from 'node:tls';
import { logger, sharedLookup } from '@tollgate/runtime';
import {
  CompressionCodecs,
  CompressionTypes,
  Kafka,
  logLevel,
  type ISocketFactory,
  type KafkaConfig,
  type LogEntry,
} from 'kafkajs';
import { patchConnectionBuffer } from './connection-buffer';
import { gzipCodec } from './gzip';
import { patchRecordBatches } from './record-batches';
import { patchRequestQueue } from './request-queue';

/** How to reach the brokers. */
export interface KafkaConnection {
  /** `host:port` of one or more brokers of the cluster. */
  brokers: readonly string[];
  /** TLS with the system's authorities (true), or with other authorities (PEM). Clients have no certificate. */
  tls?: boolean | { ca?: string };
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string };
  /** The name of this process in the brokers' logs and quotas. */
  clientId: string;
}

export const CONNECTION_TIMEOUT_MS = 3_000;
/** A broker without an answer for this time counts as lost. Joining a group may take longer. */
export const REQUEST_TIMEOUT_MS = 6_000;
/**
 * Retries inside kafkajs, for failures that pass by themselves (a new leader, a broken connection). Few, because the
 * code here decides what follows.
 */
export const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 4 };
const KEEP_ALIVE_MS = 10_000;
/** The minimum time between two warnings with the same text of kafkajs. */
const REPEATED_LOG_MS = 10_000;
const MAX_REMEMBERED_LINES = 1_000;

/**
 * What kafkajs logs as an error for each retry, and its warning of limited retries (topic-publisher.ts). Logged at
 * debug level only.
 */
const PASSING = new RegExp(
  'rebalanc|coordinator|leadership|not aware of this member|generation id|does not host|not the leader|' +
    'limiting retries',
  'i',
);

/**
 * The sockets of one client. kafkajs waits for answers before it closes, and its retries then open new connections.
 * `destroy` ends both at once.
 */
export class Sockets {
  private readonly open = new Set<net.Socket>();
  private destroyed = false;

  readonly factory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (this.destroyed) throw new Error('this client is closed');
    const socket: net.Socket = ssl
      ? tls.connect(
          { host, port, lookup: sharedLookup, ...(net.isIP(host) ? {} : { servername: host }), ...ssl },
          onConnect,
        )
      : net.connect({ host, port, lookup: sharedLookup }, onConnect);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.setNoDelay(true);
    this.open.add(socket);
    socket.once('close', () => this.open.delete(socket));
    return socket;
  };

  /** Breaks all connections, like a network fault. New ones may follow. */
  cut(): void {
    for (const socket of this.open) {
      // With an error, because kafkajs does not listen for `close` and its requests would wait for their timeout.
      // Without one if kafkajs has ended the socket itself.
      if (socket.writableEnded) socket.destroy();
      else socket.destroy(new Error('the connection was cut'));
    }
  }

  destroy(): void {
    this.destroyed = true;
    this.cut();
  }
}

/** A kafkajs client without any connection yet. `quiet`: the caller reports errors, so kafkajs need not log them. */
export function createKafka(connection: KafkaConnection, sockets: Sockets, { quiet = false } = {}): Kafka {
  const { brokers, clientId, sasl } = connection;
  const config: KafkaConfig = {
    brokers: [...brokers],
    clientId,
    ssl: typeof connection.tls === 'object' ? connection.tls : (connection.tls ?? false),
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    authenticationTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: RETRY,
    socketFactory: sockets.factory,
    logLevel: logLevel.INFO,
    logCreator: () => (quiet ? logQuietly : log),
  };
  patchKafkajs();
  CompressionCodecs[CompressionTypes.GZIP] = () => gzipCodec;
  if (sasl) config.sasl = sasl as NonNullable<KafkaConfig['sasl']>;
  return new Kafka(config);
}

/** Runs before anything of the client connects. */
export function patchKafkajs(): void {
  patchRequestQueue();
  patchConnectionBuffer();
  patchRecordBatches();
}

const lastLoggedMs = new Map<string, number>();

function about({ namespace, log }: LogEntry): object {
  const { error, broker, groupId, retryCount } = log as Record<string, unknown>;
  return { namespace, error, broker, groupId, retryCount };
}

function log(entry: LogEntry): void {
  const { message, error, broker } = entry.log;
  const text = `${message} ${error ?? ''} ${broker ?? ''}`;
  // No error of kafkajs ends the process. An error that it cannot recover from is logged where it is given up.
  if (entry.level > logLevel.WARN || PASSING.test(text) || isRepeated(text)) logQuietly(entry);
  else logger('kafka').warn(about(entry), message);
}

const logQuietly = (entry: LogEntry): void => logger('kafka').debug(about(entry), entry.log.message);

/** Each of kafkajs's many retries logs the same line. */
function isRepeated(text: string): boolean {
  const now = Date.now();
  if (now - (lastLoggedMs.get(text) ?? -Infinity) < REPEATED_LOG_MS) return true;
  if (lastLoggedMs.size >= MAX_REMEMBERED_LINES) lastLoggedMs.clear();
  lastLoggedMs.set(text, now);
  return false;
}
