import { parse } from 'pg-connection-string';
import { MigrationError } from '@tollgate/postgres';

/** Something of the operator's stands in the way; `message` is the one line that is shown, with the cure. */
export class StartError extends Error {
  readonly operator = true;
}

/** The line for a server at DATABASE_URL that does not take us; other errors are given back as they are. */
export function explainDatabase(error: unknown, url: string): unknown {
  if (error instanceof MigrationError) return new StartError(error.message, { cause: error });
  const { code, message } = error as { code?: string; message?: string };
  const where = describeUrl(url);
  const cures: Record<string, string> = {
    ECONNREFUSED: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    ENOENT: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    ENOTFOUND: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    EAI_AGAIN: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    '28P01': `PostgreSQL at ${where} refuses the password of DATABASE_URL.`,
    '28000': `PostgreSQL at ${where} refuses the user of DATABASE_URL.`,
    '3D000': `PostgreSQL at ${where} has no such database: create it, or correct DATABASE_URL.`,
    '42501': `The user of DATABASE_URL may not create schemas in ${where}: grant CREATE on the database.`,
  };
  const cure = cures[code ?? ''];
  if (cure) return new StartError(cure, { cause: error });
  if (/Connection terminated|ECONNRESET|EPIPE/i.test(`${code} ${message}`)) {
    return new StartError(
      `What answers at ${where} is no PostgreSQL, or closes the connection: correct DATABASE_URL.`,
      {
        cause: error,
      },
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

/** The line for a port that cannot be had. */
export function explainListen(error: unknown, host: string, port: number, setting: string): unknown {
  const { code } = error as { code?: string };
  if (code === 'EADDRINUSE') {
    return new StartError(
      `Port ${port} on ${host} is in use: stop what listens there, or set ${setting} (0 = any free port).`,
      { cause: error },
    );
  }
  if (code === 'EACCES')
    return new StartError(`Port ${port} may not be used by this user: set ${setting} to one above 1023.`, {
      cause: error,
    });
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new StartError(`${host} is not an address of this machine: correct TOLLGATE_HOST.`, { cause: error });
  }
  return error;
}
