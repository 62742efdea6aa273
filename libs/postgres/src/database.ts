import { parse } from 'pg-connection-string';
import { DataSource, type DataSourceOptions, type EntityManager, type EntityTarget, type ObjectLiteral } from 'typeorm';
import type { Pool, PoolConfig } from 'pg';

/** After so many runs of one transaction the error goes to the caller. */
const MAX_TRANSACTION_TRIES = 6;
const RETRY_BASE_MS = 5;
const CONNECT_TIMEOUT_MS = 5_000;

/** serialization_failure, deadlock_detected, lock_not_available: the transaction as a whole may be tried again. */
const RETRYABLE = new Set(['40001', '40P01', '55P03']);

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database`, or with `?host=/socket/directory`. */
  url: string;
  /** The one schema that this service owns; first on its search path. */
  schema: string;
  applicationName: string;
  poolSize: number;
  /** Role that every connection takes on, e.g. one without the right to change the journal. */
  role?: string;
}

/** A TypeORM data source on the service's schema, connected. Rejects when the server cannot be reached. */
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
    extra,
  } as DataSourceOptions);
  await dataSource.initialize();
  // Between the pool's hand-over and TypeORM's own listener a connection that breaks would end the process.
  (dataSource.driver as unknown as { master: Pool }).master.on('connect', (client) => client.on('error', () => {}));
  return dataSource;
}

/** Runs `work` in one transaction; the whole of it again, a bounded number of times, when Postgres says that a repeat may succeed. */
export async function transaction<T>(dataSource: DataSource, work: (tx: EntityManager) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await dataSource.transaction(work);
    } catch (error) {
      if (attempt >= MAX_TRANSACTION_TRIES || !isRetryable(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_BASE_MS * 2 ** attempt * (0.5 + Math.random())));
    }
  }
}

/** SQLSTATE of an error of pg or TypeORM, if it has one. */
export function sqlState(error: unknown): string | undefined {
  const { code, driverError } = (error ?? {}) as { code?: unknown; driverError?: { code?: unknown } };
  const state = driverError?.code ?? code;
  return typeof state === 'string' ? state : undefined;
}

function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(sqlState(error) ?? '');
}

/** node-postgres settings for one connection of a pool, a client, or LISTEN. */
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
