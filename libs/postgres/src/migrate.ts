import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Client } from 'pg';
import { connectionConfig, sqlState } from './database';
import { applyRights } from './rights';

export interface Migrations {
  /** The schema that the migrations build; created when missing. */
  schema: string;
  /** Folder of `NNN_name.sql`, numbered from 001 without gaps, and of `rights.sql` where a service has a role of its own (rights.ts). */
  directory: string;
}

export interface MigrationOptions extends Migrations {
  url: string;
}

/** The database and the code do not fit: tells which and what to do. */
export class MigrationError extends Error {}

interface MigrationFile {
  name: string;
  sql: string;
  checksum: string;
}

interface AppliedRow {
  number: number;
  name: string;
  checksum: string;
}

const UNDEFINED_TABLE = '42P01';
const INVALID_SCHEMA = '3F000';

/**
 * Brings a schema up to date: each missing file in one transaction, in order, under an advisory lock, so that any number of processes may start at once.
 * Throws MigrationError when the schema was migrated by a newer version, or when an applied file was changed.
 */
export async function migrate({ url, schema, directory }: MigrationOptions): Promise<{ applied: string[] }> {
  const files = await readMigrations(directory);
  return withClient(url, schema, async (client) => {
    await client.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-migrate', 0))`);
    // Not IF NOT EXISTS: that takes the right to make schemas also where there is nothing to be made, which an owner of one schema does not have.
    const { rows } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
    if (rows.length === 0) await client.query(`CREATE SCHEMA ${schema}`);
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${schema}.schema_migration (
         number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const missing = compare(schema, files, await appliedTo(client, schema));
    for (const [index, file] of missing.entries())
      await apply(client, schema, file, files.length - missing.length + index + 1);
    await applyRights(client, { schema, directory }, missing.length > 0);
    return { applied: missing.map(({ name }) => name) };
  });
}

/** Changes nothing: throws MigrationError when the schema is not there, is older than the code or newer, or when an applied file was changed. */
export async function checkMigrations({ url, schema, directory }: MigrationOptions): Promise<void> {
  const files = await readMigrations(directory);
  const missing = await withClient(url, schema, async (client) =>
    compare(schema, files, await appliedTo(client, schema)),
  );
  if (missing.length === 0) return;
  const state =
    missing.length === files.length
      ? 'is not there'
      : `is ${missing.length} ${missing.length === 1 ? 'migration' : 'migrations'} behind this version of Tollgate`;
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
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

/** None where there is no such schema yet. */
async function appliedTo(client: Client, schema: string): Promise<AppliedRow[]> {
  try {
    const { rows } = await client.query<AppliedRow>(
      `SELECT number, name, checksum FROM ${schema}.schema_migration ORDER BY number`,
    );
    return rows;
  } catch (error) {
    if (sqlState(error) === UNDEFINED_TABLE || sqlState(error) === INVALID_SCHEMA) return [];
    throw error;
  }
}

/** The files that are still to be applied. */
function compare(schema: string, files: readonly MigrationFile[], rows: readonly AppliedRow[]): MigrationFile[] {
  const newest = rows.at(-1)?.number ?? 0;
  if (newest > files.length) {
    throw new MigrationError(
      `The schema "${schema}" was migrated by a newer version of Tollgate (migration ${newest}; this version knows ${files.length}). Start that version, or restore an older backup.`,
    );
  }
  for (const [index, row] of rows.entries()) {
    const file = files[index]!;
    if (row.checksum !== file.checksum) {
      throw new MigrationError(
        `Migration ${file.name} of schema "${schema}" was changed after it was applied: add a new one instead.`,
      );
    }
  }
  return files.slice(rows.length);
}

async function apply(client: Client, schema: string, file: MigrationFile, number: number): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(`SET LOCAL search_path = ${schema}, public`);
    await client.query(file.sql);
    await client.query(`INSERT INTO ${schema}.schema_migration (number, name, checksum) VALUES ($1, $2, $3)`, [
      number,
      file.name,
      file.checksum,
    ]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw new MigrationError(`Migration ${file.name} of schema "${schema}" failed: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function withClient<T>(url: string, schema: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(connectionConfig({ url, schema, applicationName: `tollgate-migrate-${schema}` }));
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
