import { StartError } from '@tollgate/runtime';
import { parse } from 'pg-connection-string';
import { sqlState } from './database';
import { MigrationError } from './migrate';

/** The line for a server at DATABASE_URL that does not take us, with the cure; other errors are given back as they are. */
export function explainDatabase(error: unknown, url: string): unknown {
  if (error instanceof StartError) return error;
  if (error instanceof MigrationError) return new StartError(error.message, { cause: error });
  const { message } = error as { message?: string };
  const code = sqlState(error);
  const where = describeUrl(url);
  const cures: Record<string, string> = {
    ECONNREFUSED: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    ENOENT: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    ENOTFOUND: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    EAI_AGAIN: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    '28P01': `PostgreSQL at ${where} refuses the password of DATABASE_URL.`,
    '28000': `PostgreSQL at ${where} refuses the user of DATABASE_URL.`,
    '3D000': `PostgreSQL at ${where} has no such database: create it, or correct DATABASE_URL.`,
    '42501': `The user of DATABASE_URL lacks rights in ${where} (${message}): grant them. To migrate takes CREATE on the database, to serve takes the schema's.`,
    '57P03': `PostgreSQL at ${where} is starting or stopping: try again when it answers.`,
    '53300': `PostgreSQL at ${where} has no connection left: raise its max_connections.`,
  };
  const cure = cures[code ?? ''];
  if (cure) return new StartError(cure, { cause: error });
  if (/Connection terminated|ECONNRESET|EPIPE/i.test(`${code} ${message}`)) {
    return new StartError(
      `What answers at ${where} is no PostgreSQL, or closes the connection: correct DATABASE_URL.`,
      { cause: error },
    );
  }
  if (/timeout/i.test(message ?? '')) {
    return new StartError(`PostgreSQL at ${where} does not answer: check DATABASE_URL and the network.`, {
      cause: error,
    });
  }
  return error;
}

/** Host, port and database, never the password. */
function describeUrl(url: string): string {
  const { host, port, database } = parse(url);
  return `${host ?? 'localhost'}${port ? `:${port}` : ''}/${database ?? ''}`;
}
