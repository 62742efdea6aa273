import { certificateCure, fileProblem, StartError, tlsRefusal } from '@tollgate/runtime';
import { parse } from 'pg-connection-string';
import { sqlState } from './database';
import { MigrationError } from './migrate';

/** SQLSTATE classes of faulty statements: data exceptions, constraints, syntax, exceptions of SQL code. */
const DEFECT = /^(22|23|42|P0)...$/;
/** The options of DATABASE_URL for a client certificate. */
const OWN_CERTIFICATE = 'in DATABASE_URL (sslcert=<file>&sslkey=<file>)';

/**
 * The line for a server at DATABASE_URL that refuses the connection, with the cure. A defect is returned unchanged,
 * because its stack says more.
 */
export function explainDatabase(error: unknown, url: string): unknown {
  if (error instanceof StartError) return error;
  const line = error instanceof MigrationError ? error.message : lineOf(error, url);
  return line === null ? error : new StartError(line, { cause: error });
}

/** Null: a defect. */
function lineOf(error: unknown, url: string): string | null {
  const code = sqlState(error) ?? '';
  // For several addresses of one host: an error without its own message.
  const message = (error as { message?: string }).message || code || 'no reason given';
  const where = describeUrl(url);
  const { syscall, path } = error as NodeJS.ErrnoException;
  if (path !== undefined && syscall !== 'connect') {
    // A missing file: one of ours, unless DATABASE_URL names it.
    if (![url, decoded(url)].some((text) => text.includes(path))) return null;
    return `DATABASE_URL names a file that cannot be read (${path}: ${fileProblem(error)}): correct it.`;
  }
  const cure = cureOf(code, where, message);
  if (cure !== undefined) return cure;
  if (/Connection terminated|ECONNRESET|EPIPE/i.test(`${code} ${message}`))
    return `The server at ${where} is not PostgreSQL, or it closes the connection: correct DATABASE_URL.`;
  if (/timeout/i.test(message)) return `PostgreSQL at ${where} does not answer: check DATABASE_URL and the network.`;
  if (/does not support SSL/i.test(message))
    return `PostgreSQL at ${where} does not support TLS: leave sslmode out of DATABASE_URL, or set up TLS there.`;
  const renewal = certificateCure({ code }, 'DATABASE_URL (sslrootcert=<file>)');
  if (renewal !== undefined)
    return `The certificate of PostgreSQL at ${where} is not trusted (${message}): ${renewal}.`;
  const refusal = tlsRefusal({ code });
  if (refusal !== undefined)
    return `PostgreSQL at ${where} refuses this TLS (${refusal}): name a certificate that it accepts ${OWN_CERTIFICATE}.`;
  if (error instanceof TypeError || DEFECT.test(code)) return null;
  return `PostgreSQL at ${where} cannot be used (${message}): check DATABASE_URL and the server.`;
}

/** @param code of the system, or an SQLSTATE */
function cureOf(code: string, where: string, message: string): string | undefined {
  const cures: Record<string, string> = {
    ECONNREFUSED: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    ENOENT: `No PostgreSQL answers at ${where}: start it, or correct DATABASE_URL.`,
    EHOSTUNREACH: `No network leads to ${where} (EHOSTUNREACH): check DATABASE_URL and the network.`,
    ENETUNREACH: `No network leads to ${where} (ENETUNREACH): check DATABASE_URL and the network.`,
    ETIMEDOUT: `PostgreSQL at ${where} does not answer: check DATABASE_URL and the network.`,
    ENOTFOUND: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    EAI_AGAIN: `The host of DATABASE_URL (${where}) is not known: correct it.`,
    '28P01': `PostgreSQL at ${where} refuses the password of DATABASE_URL.`,
    '28000': refusalOf(where, message),
    '3D000': `PostgreSQL at ${where} has no such database: create it, or correct DATABASE_URL.`,
    '42501':
      `The user of DATABASE_URL lacks rights in ${where} (${message}): grant them. ` +
      "--migrate needs the schema's owner. Serving needs membership of its role, which --migrate grants its rights.",
    '57P03': `PostgreSQL at ${where} is starting or stopping: try again when it answers.`,
    '53300': `PostgreSQL at ${where} has no connection left: raise its max_connections.`,
  };
  return cures[code];
}

/** The server may refuse the kind of connection, not the user. */
function refusalOf(where: string, message: string): string {
  if (/no encryption|SSL off/.test(message))
    return (
      `PostgreSQL at ${where} allows no such connection (${message}): if it requires TLS, ` +
      'add sslmode=verify-full and sslrootcert=<file> to DATABASE_URL; otherwise correct its pg_hba.conf.'
    );
  if (/client certificate/.test(message))
    return `PostgreSQL at ${where} refuses this TLS (${message}): name one ${OWN_CERTIFICATE}.`;
  return `PostgreSQL at ${where} refuses the user of DATABASE_URL (${message}).`;
}

/** Host, port and database, without the password. */
function describeUrl(url: string): string {
  // Without the TLS parameters: they may name a missing file.
  const { host, port, database } = parse(url.replace(/ssl\w*=[^&]*/g, ''));
  return `${host ?? 'localhost'}${port ? `:${port}` : ''}/${database ?? ''}`;
}

/** A password may contain a % that escapes nothing. */
function decoded(url: string): string {
  try {
    return decodeURIComponent(url);
  } catch {
    return url;
  }
}
