import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { sqlState } from './database';
import { MigrationError } from './migration-error';

/** Says which function fires on which table. Applied apart from the functions, because it locks the tables. */
const TRIGGERS_FILE = 'triggers.sql';
/** One line for each version of the folder: its checksum, and what changed. The last line is the current version. */
const VERSIONS_FILE = 'versions.txt';
const VERSION_LINE = /^([0-9a-f]{64}) \S/;

const UNDEFINED_TABLE = '42P01';
const INVALID_SCHEMA = '3F000';

interface SqlFile {
  name: string;
  sql: string;
}

/** A folder of functions, views and triggers of this version of Tollgate. */
export interface Functions {
  files: SqlFile[];
  triggers: SqlFile | null;
  /** The checksum of all files together. */
  checksum: string;
  triggersChecksum: string;
  /** Every version before, and this one. */
  versions: ReadonlySet<string>;
}

interface AppliedFunctions {
  checksum: string;
  triggersChecksum: string;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Throws MigrationError when the last line of versions.txt does not match these files. */
export async function readFunctions(directory: string): Promise<Functions> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  const all = await Promise.all(
    names.map(async (name) => ({ name, sql: await readFile(join(directory, name), 'utf8') })),
  );
  const checksum = sha256(all.map(({ name, sql }) => `${name} ${sha256(sql)}\n`).join(''));
  const lines = (await readFile(join(directory, VERSIONS_FILE), 'utf8')).split('\n');
  const versions = lines.flatMap((line) => VERSION_LINE.exec(line)?.[1] ?? []);
  if (versions.at(-1) !== checksum)
    throw new MigrationError(
      `${directory} has changed: add to the end of its ${VERSIONS_FILE} the line "${checksum} <what changed>".`,
    );
  const triggers = all.find(({ name }) => name === TRIGGERS_FILE) ?? null;
  return {
    files: all.filter((file) => file !== triggers),
    triggers,
    checksum,
    triggersChecksum: sha256(triggers?.sql ?? ''),
    versions: new Set(versions),
  };
}

export async function makeFunctionsTable(client: Client, schema: string): Promise<void> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${schema}.schema_functions (
       number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, checksum text NOT NULL, triggers_checksum text NOT NULL,
       applied_at timestamptz NOT NULL DEFAULT now())`,
  );
}

/**
 * What was applied last, or null if nothing was. Throws MigrationError when a newer version applied it: older functions
 * would break what its migrations rely on.
 */
export async function functionsIn(
  client: Client,
  schema: string,
  { versions }: Functions,
): Promise<AppliedFunctions | null> {
  const [last] = await lastApplied(client, schema);
  if (last && !versions.has(last.checksum))
    throw new MigrationError(
      `The functions of the schema "${schema}" are those of a newer version of Tollgate. ` +
        'Start that version, or restore an older backup.',
    );
  return last ?? null;
}

const lastApplied = (client: Client, schema: string): Promise<AppliedFunctions[]> =>
  rowsIfMade(
    client,
    `SELECT checksum, triggers_checksum AS "triggersChecksum"
     FROM ${schema}.schema_functions ORDER BY number DESC LIMIT 1`,
  );

/** The rows of a table of migrations. Empty if the table or its schema does not exist yet. */
export async function rowsIfMade<Row extends object>(client: Client, sql: string): Promise<Row[]> {
  try {
    return (await client.query<Row>(sql)).rows;
  } catch (error) {
    if (sqlState(error) === UNDEFINED_TABLE || sqlState(error) === INVALID_SCHEMA) return [];
    throw error;
  }
}

/**
 * Applies all files in the caller's transaction, with the schema first on the search path. CREATE OR REPLACE keeps a
 * function's identity, owner and grants. Running calls finish with the old body, and later ones use the new one.
 */
export async function applyFunctions(
  client: Client,
  schema: string,
  functions: Functions,
  { withTriggers }: { withTriggers: boolean },
): Promise<void> {
  for (const file of functions.files) await run(client, schema, file);
  if (functions.triggers && withTriggers) {
    // Rows of a migration may still wait for their check at commit, and PostgreSQL drops no trigger with pending
    // events.
    await client.query('SET CONSTRAINTS ALL IMMEDIATE');
    await runEach(client, TRIGGERS_OF, schema);
    await run(client, schema, functions.triggers);
  }
  await runEach(client, NO_LONGER_DEFINED, schema);
  await runEach(client, NOT_THE_OWNERS, schema);
  await client.query(`INSERT INTO ${schema}.schema_functions (checksum, triggers_checksum) VALUES ($1, $2)`, [
    functions.checksum,
    functions.triggersChecksum,
  ]);
}

const TRIGGERS_OF = `
  SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) AS sql
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  WHERE c.relnamespace = $1::regnamespace AND NOT tgisinternal AND tgparentid = 0`;

/**
 * Drops what this transaction did not define: no file has it any more, or not with these parameters. DROP fails if
 * something still uses it.
 */
const NO_LONGER_DEFINED = `
  SELECT format('DROP ROUTINE %s', p.oid::regprocedure) AS sql
  FROM pg_proc p
  WHERE pronamespace = $1::regnamespace AND p.xmin <> pg_current_xact_id()::xid
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')`;

/**
 * A user who may act as the schema's owner may have applied the functions. They run with the owner's rights, so they
 * must belong to the owner.
 */
const NOT_THE_OWNERS = `
  SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, pg_get_userbyid(nspowner)) AS sql
  FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
  WHERE pronamespace = $1::regnamespace AND proowner <> nspowner AND pg_has_role(nspowner, 'SET')`;

/** Runs the statements that a query over the catalog returns. */
async function runEach(client: Client, query: string, schema: string): Promise<void> {
  const { rows } = await client.query<{ sql: string }>(query, [schema]);
  for (const { sql } of rows) await run(client, schema, { name: sql, sql });
}

async function run(client: Client, schema: string, { name, sql }: SqlFile): Promise<void> {
  await client.query(sql).catch((error: Error) => {
    throw new MigrationError(`Functions of schema "${schema}": ${name} failed: ${error.message}`, { cause: error });
  });
}
