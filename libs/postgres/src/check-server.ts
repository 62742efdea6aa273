import { StartError } from '@tollgate/runtime';
import { Client } from 'pg';
import { connectionConfig } from './database';
import { explainDatabase } from './explain-database';
import { checkMigrations, compareMigrations, migrate, type Migrations } from './migrate';
import { warnOwner } from './rights';

/** The migrations use features that older servers lack. */
const MIN_SERVER_VERSION = 16;

/**
 * Migrates the schemas, on a server that is new enough. If a newer version migrated one of them, none is changed.
 * Rejects with StartError: one line with the cure.
 */
export async function migrateSchemas(
  url: string,
  schemas: readonly Migrations[],
  minVersion = MIN_SERVER_VERSION,
): Promise<{ schema: string; applied: string[] }[]> {
  const results: { schema: string; applied: string[] }[] = [];
  try {
    await requireVersion(url, minVersion);
    for (const migrations of schemas) await compareMigrations({ url, ...migrations });
    for (const migrations of schemas)
      results.push({ schema: migrations.schema, applied: (await migrate({ url, ...migrations })).applied });
  } catch (error) {
    throw explainDatabase(error, url);
  }
  return results;
}

/**
 * Checks at the start of a service that the server is new enough and that the schema is the one of this version.
 * Changes nothing. Rejects with StartError: one line with the cure.
 */
export async function checkSchema(url: string, schema: Migrations, minVersion = MIN_SERVER_VERSION): Promise<void> {
  try {
    await requireVersion(url, minVersion);
    await checkMigrations({ url, ...schema });
    await warnOwner(url, schema.schema);
  } catch (error) {
    throw explainDatabase(error, url);
  }
}

/** The result of --migrate as a sentence. */
export async function migrateSchema(url: string, migrations: Migrations): Promise<string> {
  const [{ applied } = { applied: [] }] = await migrateSchemas(url, [migrations]);
  return applied.length === 0
    ? `The schema "${migrations.schema}" is up to date.`
    : `The schema "${migrations.schema}" was migrated: ${applied.join(', ')}.`;
}

async function requireVersion(url: string, minVersion: number): Promise<void> {
  const client = new Client(connectionConfig({ url, schema: 'public', applicationName: 'tollgate-start' }));
  await client.connect();
  try {
    const { rows } = await client.query<{ number: string; name: string }>(
      `SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS name`,
    );
    const [{ number, name } = { number: '0', name: 'unknown' }] = rows;
    if (Number(number) < minVersion * 10_000)
      throw new StartError(`PostgreSQL ${name} is too old: Tollgate needs ${minVersion} or newer at DATABASE_URL.`);
  } finally {
    await client.end();
  }
}
