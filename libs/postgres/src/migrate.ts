import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Client } from 'pg';
import { connectionConfig } from './database';

export interface MigrationOptions {
  url: string;
  /** The schema that the migrations build; created when missing. */
  schema: string;
  /** Folder of `NNN_name.sql`, numbered from 001 without gaps. */
  directory: string;
}

/** The database and the code do not fit: tells which and what to do. */
export class MigrationError extends Error {}

/**
 * Brings a schema up to date: each missing file in one transaction, in order, under an advisory lock, so that any number of processes may start at once.
 * Throws MigrationError when the schema was migrated by a newer version, or when an applied file was changed.
 */
export async function migrate({ url, schema, directory }: MigrationOptions): Promise<{ applied: string[] }> {
  const files = (await readdir(directory)).filter((name) => /^\d{3}_.+\.sql$/.test(name)).sort();
  const client = new Client(connectionConfig({ url, schema, applicationName: `tollgate-migrate-${schema}` }));
  await client.connect();
  try {
    await client.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-migrate', 0))`);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${schema}.schema_migration (
         number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const { rows } = await client.query<{ number: number; name: string; checksum: string }>(
      `SELECT number, name, checksum FROM ${schema}.schema_migration ORDER BY number`,
    );
    const newest = rows.at(-1)?.number ?? 0;
    if (newest > files.length) {
      throw new MigrationError(
        `The schema "${schema}" was migrated by a newer version of Tollgate (migration ${newest}; this version knows ${files.length}). Start that version, or restore an older backup.`,
      );
    }
    const applied: string[] = [];
    for (const [index, file] of files.entries()) {
      const number = index + 1;
      if (Number(basename(file).slice(0, 3)) !== number)
        throw new MigrationError(`${directory}: expected migration ${number}, found ${file}`);
      const sql = await readFile(join(directory, file), 'utf8');
      const checksum = createHash('sha256').update(sql).digest('hex');
      const existing = rows[index];
      if (existing) {
        if (existing.checksum !== checksum) {
          throw new MigrationError(
            `Migration ${file} of schema "${schema}" was changed after it was applied: add a new one instead.`,
          );
        }
        continue;
      }
      await client.query('BEGIN');
      try {
        await client.query(`SET LOCAL search_path = ${schema}, public`);
        await client.query(sql);
        await client.query(`INSERT INTO ${schema}.schema_migration (number, name, checksum) VALUES ($1, $2, $3)`, [
          number,
          file,
          checksum,
        ]);
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw new MigrationError(`Migration ${file} of schema "${schema}" failed: ${(error as Error).message}`, {
          cause: error,
        });
      }
      applied.push(file);
    }
    return { applied };
  } finally {
    await client.end();
  }
}
