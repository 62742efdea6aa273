import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { logger } from '@tollgate/runtime';
import type { Client } from 'pg';
import type { EntityTarget, ObjectLiteral } from 'typeorm';
import { openDataSource, sqlState, type DatabaseOptions, type ServiceDataSource } from './database';
import { withClient } from './with-client';

/** A file beside the numbered migrations of a schema: the current grants of its service's role. Safe to repeat. */
const RIGHTS_FILE = 'rights.sql';
/** SQLSTATE: invalid_parameter_value (no such role), insufficient_privilege (not a member of it). */
const ROLE_REFUSED = new Set(['22023', '42501']);

/** The role that serves a schema: it owns nothing and has the rights of `rights.sql`. */
export const serviceRole = (schema: string): string => `tollgate_${schema}`;

/**
 * The statements that grant the service's role its rights, or null if nothing is to be done. They run after migrations
 * (`migrates`), when the file has changed, and when the role has no rights: it was created later, or a backup was
 * restored without grants. They create the role first. If the role is missing and cannot be created, nothing is
 * granted, and the service reports it at its start. Call it under the lock of the migrations, as the owner.
 */
export async function rightsToApply(
  client: Client,
  { schema, directory }: { schema: string; directory: string },
  migrates: boolean,
): Promise<string | null> {
  const sql = await readFile(join(directory, RIGHTS_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (sql === null) return null;
  const role = serviceRole(schema);
  await client.query(MAKE_ROLE.replaceAll('$role', role));
  const mark = `rights ${createHash('sha256').update(sql).digest('hex')}`;
  const { rows } = await client.query<{ mark: string | null; has: boolean }>(
    `SELECT obj_description(to_regnamespace($2), 'pg_namespace') AS mark, has_schema_privilege(oid, $2, 'USAGE') AS has
     FROM pg_roles WHERE rolname = $1`,
    [role, schema],
  );
  const [now] = rows;
  if (!now || (!migrates && now.has && now.mark === mark)) return null;
  return `${sql};\nCOMMENT ON SCHEMA ${schema} IS '${mark}'`;
}

/**
 * A role belongs to the server, not to the database. It may exist already, another database's migration may be creating
 * it, or this user may not create roles. A superuser may take on any role. Another user who created it must be granted
 * it. An owner who only migrates cannot grant it to itself, and need not.
 */
const MAKE_ROLE = `DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '$role') THEN
    CREATE ROLE $role NOLOGIN;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
      EXECUTE format('GRANT $role TO %I', current_user);
    END IF;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation OR undefined_object OR insufficient_privilege THEN NULL;
END $$`;

/**
 * A service's connections. They run under its role if the login may take it on. Otherwise they run as the login itself,
 * with a warning.
 */
export async function openServiceDataSource(
  service: Pick<DatabaseOptions, 'url' | 'schema' | 'poolSize'>,
  entities: EntityTarget<ObjectLiteral>[] = [],
): Promise<ServiceDataSource> {
  const options = { ...service, applicationName: `tollgate-${service.schema}` };
  const role = serviceRole(options.schema);
  if (await mayTakeOn(role, options)) return openDataSource({ ...options, role }, entities);
  logger(options.schema).warn(
    { role },
    'the database user may not take on this role, so missing grants restrict nothing ' +
      '(docs/operating/distributed.md#rights-in-postgresql)',
  );
  return openDataSource(options, entities);
}

async function mayTakeOn(role: string, options: Omit<DatabaseOptions, 'role'>): Promise<boolean> {
  try {
    await withClient(options, (client) => client.query(`SET ROLE ${role}`));
    return true;
  } catch (error) {
    if (ROLE_REFUSED.has(sqlState(error) ?? '')) return false;
    throw error;
  }
}

/** For a service that starts with its own login: a login that may act as the owner can bypass the rights. */
export async function warnOwner(url: string, schema: string): Promise<void> {
  const applicationName = `tollgate-start-${schema}`;
  await withClient({ url, schema, applicationName }, async (client) => {
    const { rows } = await client.query<{ name: string; owns: boolean }>(
      `SELECT session_user AS name, pg_has_role(session_user, nspowner, 'MEMBER') AS owns
       FROM pg_namespace WHERE nspname = $1`,
      [schema],
    );
    if (!rows[0]?.owns) return;
    logger(schema).warn(
      { user: rows[0].name, role: serviceRole(schema) },
      'the login of DATABASE_URL may act as the owner of the schema, and so change what is append-only: ' +
        'sign in as one that is only a member of this role (docs/operating/distributed.md#rights-in-postgresql)',
    );
  });
}
