import { backoffMs, delay } from '@tollgate/runtime';
import { parse } from 'pg-connection-string';
import { DataSource, type DataSourceOptions, type EntityManager, type EntityTarget, type ObjectLiteral } from 'typeorm';
import type { Pool, PoolConfig } from 'pg';
import { ANSWER_TIMEOUT_MS, BreakableClient, poolOf, STATEMENT_TIMEOUT_MS } from './statements';

/** After this many runs of one transaction the caller gets the error. */
const MAX_TRANSACTION_TRIES = 6;
const RETRY_BASE_MS = 10;
const MAX_RETRY_MS = 320;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_DELAY_MS = 10_000;

/** serialization_failure, deadlock_detected, lock_not_available: a repeat of the whole transaction may succeed. */
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
  /** Shorter in tests. */
  answerTimeoutMs?: number;
}

/**
 * PostgreSQL compiles a statement that its planner estimates as costly. Without enable_seqscan, the planner also
 * estimates short statements as costly. Measured with the audit of roll-ups: 5 s to compile a statement that ran for
 * 0.1 ms.
 */
const NO_COMPILATION = '-c jit=off';

/** The connections of a service. Nest closes them after all other modules if a global module provides them. */
export class ServiceDataSource extends DataSource {
  /** For a library that runs SQL of its own under the same role, limits and timeouts. */
  get pool(): Pool {
    return poolOf(this);
  }

  /** A hook of Nest. This library itself knows no framework. */
  onApplicationShutdown(): Promise<void> {
    return this.destroy();
  }
}

/** A connected TypeORM data source on the service's schema. Rejects when the server cannot be reached. */
export async function openDataSource(
  options: DatabaseOptions,
  entities: EntityTarget<ObjectLiteral>[] = [],
): Promise<ServiceDataSource> {
  const { host, port, user, password, database, ssl, ...extra } = connectionConfig(options);
  const dataSource = new ServiceDataSource({
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
      query_timeout: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
      Client: BreakableClient,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    },
  } as DataSourceOptions);
  await dataSource.initialize();
  return dataSource;
}

/**
 * For a pool without TypeORM. The query that fails on a broken connection reports it; an idle connection breaks
 * silently. Without a listener a broken connection would end the process, even between its hand-over and its first use.
 */
export function outliveConnections(pool: Pool): void {
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
}

/**
 * Runs `work` in one transaction. Runs all of it again, a bounded number of times, when PostgreSQL reports an error
 * that a repeat may cure.
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

/** The SQLSTATE for a row that exists already. */
export const UNIQUE_VIOLATION = '23505';

/** SQLSTATE of an error of pg or TypeORM, if it has one. */
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
  const settings = [`-c search_path=${options.schema},public`, NO_COMPILATION];
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
