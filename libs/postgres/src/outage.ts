import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { sqlState } from './database';

/**
 * SQLSTATE: the connection failed, the server stops, starts or has crashed, or it has no connection left. 08P01 is a
 * message that the server cannot read.
 */
const NOT_SERVING = /^(080..|57P0.|53300)$/;
/** Node's codes for a connection that cannot be made, or that broke. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN'],
  ...['ENETUNREACH', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN'],
]);
/** How the messages of node-postgres and its pool begin that have no code. */
const BROKEN = [
  ...['Connection terminated', 'Query read timeout', 'timeout expired', 'timeout exceeded when trying to connect'],
  ...['Client has encountered a connection error', 'Client was closed', 'Cannot use a pool after calling end'],
];
/** What TypeORM throws for a statement in a transaction whose connection broke since the last one. */
const RELEASED = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/**
 * Whether a statement failed because PostgreSQL cannot be reached or does not serve now: the same statement succeeds
 * when it does. Any other error is one of the statement, or of the set-up.
 */
export function isOutage(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== undefined && (NOT_SERVING.test(code) || UNREACHABLE.has(code))) return true;
  const { message, syscall } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  // The socket of a server that does not run.
  if (code === 'ENOENT') return syscall === 'connect';
  return RELEASED.some((kind) => error instanceof kind) || BROKEN.some((start) => message?.startsWith(start));
}
