import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Client } from 'pg';
import { delay } from '@tollgate/runtime';
import { sqlState } from './database';
import { applyFunctions, functionsIn, makeFunctionsTable, readFunctions, rowsIfMade } from './functions';
import { MigrationError } from './migration-error';
import { rightsToApply } from './rights';
import { withClient } from './with-client';

export { MigrationError };

export interface Migrations {
  /** The schema of the migrations. Created when missing. */
  schema: string;
  /**
   * The folder of `NNN_name.sql`, numbered from 001 without gaps, and of `rights.sql` for a service with its own role
   * (rights.ts).
   */
  directory: string;
  /** The folder of the schema's current functions, views and triggers, if it has any (functions.ts). */
  functions?: string;
}

export interface MigrationOptions extends Migrations {
  url: string;
  /** LOCK_TIMEOUT_MS when absent. For tests. */
  lockTimeoutMs?: number;
}

interface MigrationFile {
  name: string;
  sql: string;
  checksum: string;
  /** Checksums of the file's former texts. A database that applied one of them has the same tables. */
  formerChecksums: string[];
}

interface AppliedRow {
  number: number;
  name: string;
  checksum: string;
}

/** All other users of a table queue behind a waiting migration. So a run gives up after this time and starts again. */
const LOCK_TIMEOUT_MS = 10_000;
const MAX_RUNS = 6;
const RUN_PAUSE_MS = 200;
/** deadlock_detected, lock_not_available: services use the tables meanwhile. */
const BUSY = new Set(['40P01', '55P03']);
const FORMER_CHECKSUM = /^-- formerly sha256 ([0-9a-f]{64})$/gm;

/**
 * Migrates a schema in one transaction: the missing numbered files in order, then functions, triggers and rights if
 * they changed. It holds an advisory lock, so any number of processes may start at once. Running services see the
 * schema before or after, and nothing between. Throws MigrationError when a newer version migrated the schema, or when
 * an applied file was changed.
 */
export async function migrate({
  url,
  lockTimeoutMs = LOCK_TIMEOUT_MS,
  ...migrations
}: MigrationOptions): Promise<{ applied: string[] }> {
  const { schema, directory } = migrations;
  const files = await readMigrations(directory);
  const functions = migrations.functions === undefined ? null : await readFunctions(migrations.functions);
  return withMigrator(url, schema, async (client) => {
    await client.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-migrate', 0))`);
    // Not IF NOT EXISTS: that requires the right to create schemas even if the schema exists, and the owner of one
    // schema lacks that right.
    const { rows } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
    if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`);
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${schema}.schema_migration (
         number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
         applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const missing = compare(schema, files, await appliedTo(client, schema));
    if (functions) await makeFunctionsTable(client, schema);
    const before = functions && (await functionsIn(client, schema, functions));
    const functionsChange = functions !== null && (missing.length > 0 || before?.checksum !== functions.checksum);
    const rights = await rightsToApply(client, migrations, missing.length > 0 || functionsChange);
    if (missing.length === 0 && !functionsChange && rights === null) return { applied: [] };

    await inTransaction(client, { schema, lockTimeoutMs }, async () => {
      for (const [index, file] of missing.entries())
        await apply(client, schema, file, files.length - missing.length + index + 1);
      if (functionsChange)
        await applyFunctions(client, schema, functions, {
          withTriggers: missing.length > 0 || before?.triggersChecksum !== functions.triggersChecksum,
        });
      if (rights !== null) await client.query(rights);
    });
    return { applied: [...missing.map(({ name }) => name), ...(functionsChange ? ['functions'] : [])] };
  });
}

/**
 * Throws what `migrate` would throw about a newer schema or a changed file, and changes nothing. For several schemas:
 * each is compared before the first one is migrated.
 */
export async function compareMigrations({ url, ...migrations }: MigrationOptions): Promise<void> {
  const { schema } = migrations;
  const files = await readMigrations(migrations.directory);
  const functions = migrations.functions === undefined ? null : await readFunctions(migrations.functions);
  await withMigrator(url, schema, async (client) => {
    compare(schema, files, await appliedTo(client, schema));
    if (functions) await functionsIn(client, schema, functions);
  });
}

/**
 * Changes nothing. Throws MigrationError when the schema is missing, older or newer than the code, or when an applied
 * file was changed.
 */
export async function checkMigrations({ url, ...migrations }: MigrationOptions): Promise<void> {
  const { schema } = migrations;
  const files = await readMigrations(migrations.directory);
  const functions = migrations.functions === undefined ? null : await readFunctions(migrations.functions);
  const state = await withMigrator(url, schema, async (client) => {
    const missing = compare(schema, files, await appliedTo(client, schema)).length;
    if (missing === files.length) return 'is not there';
    if (missing > 0)
      return `is ${missing} ${missing === 1 ? 'migration' : 'migrations'} behind this version of Tollgate`;
    if (functions && (await functionsIn(client, schema, functions))?.checksum !== functions.checksum)
      return 'has the functions of an older version of Tollgate';
    return null;
  });
  if (state === null) return;
  throw new MigrationError(
    `The schema "${schema}" ${state}: run this service once with --migrate, as the schema's owner.`,
  );
}

async function readMigrations(directory: string): Promise<MigrationFile[]> {
  const names = (await readdir(directory)).filter((name) => /^\d{3}_.+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name, index) => {
      if (Number(basename(name).slice(0, 3)) !== index + 1)
        throw new MigrationError(`${directory}: expected migration ${index + 1}, found ${name}`);
      const sql = await readFile(join(directory, name), 'utf8');
      const formerChecksums = [...sql.matchAll(FORMER_CHECKSUM)].map(([, checksum]) => checksum!);
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex'), formerChecksums };
    }),
  );
}

const appliedTo = (client: Client, schema: string): Promise<AppliedRow[]> =>
  rowsIfMade(client, `SELECT number, name, checksum FROM ${schema}.schema_migration ORDER BY number`);

/** The files that have yet to be applied. */
function compare(schema: string, files: readonly MigrationFile[], rows: readonly AppliedRow[]): MigrationFile[] {
  const newest = rows.at(-1)?.number ?? 0;
  if (newest > files.length) {
    throw new MigrationError(
      `The schema "${schema}" was migrated by a newer version of Tollgate ` +
        `(migration ${newest}; this version knows ${files.length}). Start that version, or restore an older backup.`,
    );
  }
  for (const [index, row] of rows.entries()) {
    const file = files[index]!;
    if (row.checksum !== file.checksum && !file.formerChecksums.includes(row.checksum)) {
      throw new MigrationError(
        `Migration ${file.name} of schema "${schema}" was changed after it was applied: add a new one instead.`,
      );
    }
  }
  return files.slice(rows.length);
}

/**
 * Runs `work` with the schema first on the search path. Repeats it as a whole, at most MAX_RUNS times, when running
 * services are in the way.
 */
async function inTransaction(
  client: Client,
  { schema, lockTimeoutMs }: { schema: string; lockTimeoutMs: number },
  work: () => Promise<void>,
): Promise<void> {
  for (let run = 1; ; run++) {
    await client.query('BEGIN');
    try {
      await client.query(`SET LOCAL search_path = ${schema}, public`);
      await client.query(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
      await work();
      await client.query('COMMIT');
      return;
    } catch (error) {
      await client.query('ROLLBACK');
      const state = sqlState(error instanceof MigrationError ? error.cause : error);
      if (run === MAX_RUNS || !BUSY.has(state ?? '')) throw error;
    }
    await delay(run * RUN_PAUSE_MS);
  }
}

async function apply(client: Client, schema: string, file: MigrationFile, number: number): Promise<void> {
  try {
    await client.query(file.sql);
  } catch (error) {
    throw new MigrationError(`Migration ${file.name} of schema "${schema}" failed: ${(error as Error).message}`, {
      cause: error,
    });
  }
  await client.query(`INSERT INTO ${schema}.schema_migration (number, name, checksum) VALUES ($1, $2, $3)`, [
    number,
    file.name,
    file.checksum,
  ]);
}

const withMigrator = <T>(url: string, schema: string, work: (client: Client) => Promise<T>): Promise<T> =>
  withClient({ url, schema, applicationName: `tollgate-migrate-${schema}` }, work);
