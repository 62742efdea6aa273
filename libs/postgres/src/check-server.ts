import { StartError } from '@tollgate/runtime';
import { explainDatabase } from './explain-database';
import { checkMigrations, compareMigrations, migrate, type Migrations } from './migrate';
import { warnOwner } from './rights';
import { withClient } from './with-client';

/**
 * Where the standalone form has its holds, beside the schemas of the services. The services have theirs in Redis, so
 * this schema tells whose database it is. A dump has it, and every version of the standalone form makes it.
 */
export const HOLDS_SCHEMA = 'admission';
const OF_THE_SERVICES =
  'The database is that of the distributed form: start its services (docs/operating/distributed.md), or name another ' +
  'database in DATABASE_URL.';
const OF_THE_STANDALONE =
  'The database of DATABASE_URL is that of a standalone form: name another one, and move the books there ' +
  '(docs/operating/distributed.md#from-the-standalone-form).';
const READ_ONLY =
  'PostgreSQL at DATABASE_URL takes no writes: it is a standby, it is still being restored, or ' +
  'default_transaction_read_only is on. Name the primary server, or wait for it.';
/** The migrations use features that older servers lack. */
const MIN_SERVER_VERSION = 16;

/**
 * Migrates the schemas, on a server that is new enough, in a database of the same form. If a newer version migrated one
 * of them, none is changed. The standalone form passes HOLDS_SCHEMA first: its database then has it from the beginning,
 * even if the first start is interrupted. Rejects with StartError: one line with the cure.
 */
export async function migrateSchemas(
  url: string,
  schemas: readonly Migrations[],
  minVersion = MIN_SERVER_VERSION,
): Promise<{ schema: string; applied: string[] }[]> {
  const results: { schema: string; applied: string[] }[] = [];
  try {
    await requireDatabase(url, schemas, minVersion);
    for (const migrations of schemas) await compareMigrations({ url, ...migrations });
    for (const migrations of schemas)
      results.push({ schema: migrations.schema, applied: (await migrate({ url, ...migrations })).applied });
  } catch (error) {
    throw explainDatabase(error, url);
  }
  return results;
}

/**
 * Checks at the start of a service that the server is new enough, that no standalone form uses the database,
 * and that the schema has this version. Changes nothing. Rejects with StartError: one line with the cure.
 */
export async function checkSchema(url: string, schema: Migrations, minVersion = MIN_SERVER_VERSION): Promise<void> {
  try {
    await requireDatabase(url, [schema], minVersion);
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

/** Both forms would spend the same credit, and take each other's messages out of the outboxes. */
async function requireDatabase(url: string, schemas: readonly Migrations[], minVersion: number): Promise<void> {
  await withClient({ url, schema: 'public', applicationName: 'tollgate-start' }, async (client) => {
    const names = schemas.map(({ schema }) => schema);
    const { rows } = await client.query<{ number: string; name: string; is_read_only: boolean; made: string[] }>(
      `SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS name,
              current_setting('transaction_read_only')::boolean AS is_read_only,
              ARRAY(SELECT nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                     WHERE relname = 'schema_migration' AND nspname = ANY ($1)) AS made`,
      [[HOLDS_SCHEMA, ...names]],
    );
    const { number, name, is_read_only: isReadOnly, made } = rows[0]!;
    if (Number(number) < minVersion * 10_000)
      throw new StartError(`PostgreSQL ${name} is too old: Tollgate needs ${minVersion} or newer at DATABASE_URL.`);
    if (isReadOnly) throw new StartError(READ_ONLY);
    const isStandalone = names.includes(HOLDS_SCHEMA);
    if (made.length > 0 && made.includes(HOLDS_SCHEMA) !== isStandalone)
      throw new StartError(isStandalone ? OF_THE_SERVICES : OF_THE_STANDALONE);
  });
}
