import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@tollgate/runtime';
import { parse } from 'pg-connection-string';
import { DataSource, type DataSourceOptions, type EntityManager, type EntityTarget, type ObjectLiteral } from 'typeorm';
import type { Socket } from 'node:net';
import type { Pool, PoolClient, PoolConfig, QueryConfig } from 'pg';

/** The maximum number of runs of one transaction. After that the caller gets the error. */
const MAX_TRANSACTION_TRIES = 6;
const RETRY_BASE_MS = 10;
const MAX_RETRY_MS = 320;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * The server ends a statement that takes longer. It also ends a transaction whose client has fallen silent, which
 * releases its locks.
 */
const STATEMENT_TIMEOUT_MS = 60_000;
/**
 * The limit for a server that does not answer at all (a network that drops packets). The connection is given up, and
 * the pool replaces it.
 */
const QUERY_TIMEOUT_MS = 70_000;
const KEEP_ALIVE_DELAY_MS = 10_000;

/** serialization_failure, deadlock_detected, lock_not_available: the whole transaction may be repeated. */
const RETRYABLE = new Set(['40001', '40P01', '55P03']);

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database`, or with `?host=/socket/directory`. */
  url: string;
  /** The only schema of this service, first on its search path. */
  schema: string;
  applicationName: string;
  poolSize: number;
  /** The role that every connection takes on, e.g. one without the right to change the journal. */
  role?: string;
}

/** A connected TypeORM data source on the service's schema. Rejects when the server cannot be reached. */
export async function openDataSource(
  options: DatabaseOptions,
  entities: EntityTarget<ObjectLiteral>[] = [],
): Promise<DataSource> {
  const { host, port, user, password, database, ssl, ...extra } = connectionConfig(options);
  const dataSource = new DataSource({
    type: 'postgres',
    host,
    port,
    username: user,
    password,
    database,
    ssl,
    schema: options.schema,
    entities: entities as never,
    poolSize: options.poolSize,
    synchronize: false,
    logging: false,
    installExtensions: false,
    poolErrorHandler: () => {},
    extra: {
      ...extra,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    },
  } as DataSourceOptions);
  await dataSource.initialize();
  const pool = (dataSource.driver as unknown as { master: Pool }).master;
  outliveConnections(pool);
  breakOffSilent(pool);
  return dataSource;
}

/**
 * Listens for errors of a pool connection, idle or in use. Without a listener a broken connection would end the
 * process, even just after its hand-over. Its user learns of the break from the next query.
 */
export function outliveConnections(pool: Pool): void {
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
}

/**
 * Breaks a connection on which an answer was given up (QUERY_TIMEOUT_MS). node-postgres would keep it, and everything
 * that follows on it would wait behind the unanswered query: first the rollback, then the next user from the pool.
 */
function breakOffSilent(pool: Pool): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const watched = (...args: unknown[]): unknown => {
      const answer = query(...args);
      if (answer instanceof Promise)
        answer.catch((error: unknown) => {
          if (isSilence(error)) breakOff(client, error as Error);
        });
      return answer;
    };
    client.query = watched as typeof client.query;
  });
}

/** Queries on it fail. Its user returns it as broken, so no one else gets it. */
function breakOff(client: PoolClient, reason: Error): void {
  client.emit('error', reason);
  socketOf(client).destroy();
}

/** node-postgres sets no code for it. */
const isSilence = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

const socketOf = (client: PoolClient): Socket =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream;

/**
 * Runs `work` in one transaction. Repeats the whole transaction, a bounded number of times, when PostgreSQL reports
 * that a repeat may succeed.
 */
export async function transaction<T>(dataSource: DataSource, work: (tx: EntityManager) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await dataSource.transaction(work);
    } catch (error) {
      if (attempt >= MAX_TRANSACTION_TRIES || !isRetryable(error)) throw error;
      await delay(backoffMs(attempt, RETRY_BASE_MS, MAX_RETRY_MS));
    }
  }
}

/**
 * For statements that may take longer than a service's usual ones, such as a proof over all books. Each statement of
 * the transaction may take `timeoutMs`, on the server and on this side. When `stopped` is aborted, the running
 * statement fails at once with its reason, because its connection is broken off. TypeORM's queries have no timeout of
 * their own, so the settings apply to its connection.
 */
export async function withStatementTimeout(
  tx: EntityManager,
  timeoutMs: number,
  stopped?: AbortSignal,
): Promise<Query> {
  await tx.query(`SELECT set_config('statement_timeout', $1, true)`, [String(timeoutMs)]);
  const client = (await tx.queryRunner!.connect()) as PoolClient;
  const answerTimeoutMs = timeoutMs + QUERY_TIMEOUT_MS - STATEMENT_TIMEOUT_MS;
  const stop = () => breakOff(client, stopped!.reason as Error);
  return async <R extends object>(text: string, values: unknown[]) => {
    stopped?.throwIfAborted();
    stopped?.addEventListener('abort', stop);
    try {
      const { rows } = await client.query<R>({ text, values, query_timeout: answerTimeoutMs } as QueryConfig);
      return rows;
    } catch (error) {
      stopped?.throwIfAborted();
      throw error;
    } finally {
      stopped?.removeEventListener('abort', stop);
    }
  };
}

export type Query = <R extends object>(text: string, values: unknown[]) => Promise<R[]>;

/** The SQLSTATE of an error of pg or TypeORM, if it has one. */
export function sqlState(error: unknown): string | undefined {
  const { code, driverError } = (error ?? {}) as { code?: unknown; driverError?: { code?: unknown } };
  const state = driverError?.code ?? code;
  return typeof state === 'string' ? state : undefined;
}

function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(sqlState(error) ?? '');
}

/** node-postgres settings for a connection of a pool, a client, or LISTEN. */
export function connectionConfig(options: Omit<DatabaseOptions, 'poolSize'>): PoolConfig {
  const { host, port, user, password, database, ssl } = parse(options.url);
  const settings = [`-c search_path=${options.schema},public`];
  if (options.role) settings.push(`-c role=${options.role}`);
  return {
    ...(host ? { host } : {}),
    ...(port ? { port: Number(port) } : {}),
    ...(user ? { user } : {}),
    ...(password ? { password } : {}),
    ...(database ? { database } : {}),
    ...(ssl ? { ssl: ssl as NonNullable<PoolConfig['ssl']> } : {}),
    application_name: options.applicationName,
    options: settings.join(' '),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
}
