import { newId } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { sqlState } from '@tollgate/postgres';
import { usePostgresServer } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Client } from 'pg';
import { MIGRATIONS as AUTH } from '../../apps/auth/src/database';
import { ChargeGatherer } from '../../apps/billing/src/gather/charge-gatherer';
import { Poster } from '../../apps/billing/src/post/poster';
import { MIGRATIONS as BILLING, openBillingDatabase, type BillingDataSource } from '../../apps/billing/src/database';
import { CENT, charge } from '../../apps/billing/src/testing/billing.fixture';
import { TopUps } from '../../apps/billing/src/topups/top-ups';
import { MIGRATIONS as CONSOLE } from '../../apps/console/src/database';
import { MIGRATIONS as METERING } from '../../apps/metering/src/database';

export const SERVICES = ['auth', 'metering', 'billing', 'console'] as const;
export type Service = (typeof SERVICES)[number];
export const SCHEMAS = { auth: AUTH, metering: METERING, billing: BILLING, console: CONSOLE };
/** Each service, and the owner of its schema. */
export const LOGINS = SERVICES.flatMap((name) => [name, `${name}_owner`]);
/** The SQLSTATE of a statement without the right to it. */
export const NO_RIGHT = '42501';
const POSTING = { postingIntervalMs: 0, now: () => new Date() };
const messages = { request: async () => ({}) } as unknown as Messages;

export type RolesServer = ReturnType<typeof useRolesServer>;

/** Starts a PostgreSQL server for the calling test file that can run deploy/postgres/roles.sql. */
export function useRolesServer() {
  const postgres = usePostgresServer({
    settings: { shared_preload_libraries: 'pg_stat_statements' },
    files: {
      '/roles.sql': readFileSync(resolve(__dirname, '../../deploy/postgres/roles.sql'), 'utf8'),
      ...Object.fromEntries(
        LOGINS.map((login) => [`/run/secrets/${login.replace('_', '-')}-database-password`, `pw-${login}\n`]),
      ),
    },
  });
  /** Runs a command in the container as the superuser. */
  const inside = (command: string, ...args: string[]) =>
    postgres.exec([command, '-p', String(postgres.port), '-U', 'postgres', ...args]);
  return {
    /** The URL of the superuser. */
    get adminUrl() {
      return postgres.url;
    },
    url: (login: string, database = 'tollgate') =>
      `postgres://${login}:pw-${login}@127.0.0.1:${postgres.port}/${database}`,
    inside,
    makeRoles: (database = 'tollgate') => inside('psql', '-qX', '-d', database, '-f', '/roles.sql'),
    /** The same without the file of a password, and with another password of auth. */
    async makeRolesWithout(file: string): Promise<void> {
      const edit = `s#${file}#/missing#; s#.cat /run/secrets/auth-database-password.#another#`;
      await postgres.exec(['sh', '-c', `sed -e '${edit}' /roles.sql > /lacking.sql`]);
      await inside('psql', '-qX', '-d', 'tollgate', '-f', '/lacking.sql');
    },
  };
}

export async function connected<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export const ask = <R extends object>(url: string, sql: string) =>
  connected(url, async (client) => (await client.query<R>(sql)).rows);

/** The SQLSTATE of the refusal, or undefined if the statement succeeded. */
export const refusal = (client: Client, sql: string) =>
  client.query(sql).then(
    () => undefined,
    (error: unknown) => sqlState(error) ?? String(error),
  );

/** Books a top-up and a debit of two cents as billing does. */
export async function book(dataSource: BillingDataSource, tenantId: string): Promise<void> {
  await topUpNow(dataSource, tenantId);
  await new ChargeGatherer(dataSource, POSTING).gather([charge(tenantId, 2n * CENT)]);
  await new Poster(dataSource, POSTING).postDue();
}

async function topUpNow(dataSource: BillingDataSource, tenantId: string): Promise<void> {
  const wanted = { tenantId, amountCents: 100, source: 'manual', ref: newId('msg') };
  await new TopUps(dataSource, messages, POSTING).add(wanted);
}

/** Opens billing's database as the service does. */
export async function withBilling<T>(url: string, work: (dataSource: BillingDataSource) => Promise<T>): Promise<T> {
  const dataSource = await openBillingDatabase(url);
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
