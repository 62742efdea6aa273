import { UnavailableError } from '@tollgate/contracts';
import { certificateCure, tlsRefusal } from '@tollgate/runtime';

export function unavailable(reason: string, cause?: Error): UnavailableError {
  const error = new UnavailableError(`Redis is not available: ${reason}`);
  return cause ? Object.assign(error, { cause }) : error;
}

/** What Redis or the connection refuses for now, unlike a faulty call (`ERR …`). */
export function isRefusal(error: Error): boolean {
  return error.name !== 'ReplyError' || !/^ERR |^WRONGTYPE/.test(error.message);
}

export function isFunctionMissing(reply: unknown): boolean {
  return reply instanceof Error && /^ERR Function not found/.test(reply.message);
}

/** The user's ACL lacks a key, a command or a channel. */
export function isRightMissing({ message }: Error): boolean {
  return /NOPERM|NOAUTH/.test(message);
}

/** Only the loading of functions is refused. Another process may have to do it (library-keeper.ts). */
export function isLoadingForbidden(error: Error): boolean {
  return isRightMissing(error) && /function\|load/i.test(error.message);
}

/** Why no connection was made, and the cure. */
export function connectionProblem(error: Error | undefined): string {
  const cause = error && innermost(error);
  const reason = cause ? reasonOf(cause) : '';
  if (/WRONGPASS|NOAUTH|invalid password|NOPERM/.test(reason))
    return `Redis refuses this user and password${reason}: correct them.`;
  const cure = cause && certificateCure(cause, '?ca=<file>');
  if (cure !== undefined) return `the certificate of Redis is not trusted${reason}: ${cure}.`;
  // Clients have no certificate, and Redis asks for one by default.
  const refusal = cause && tlsRefusal(cause);
  if (refusal !== undefined) return `Redis refuses this TLS (${refusal}): set its tls-auth-clients to no.`;
  return `Redis does not answer${reason}: start it, or correct the address.`;
}

/** Why a server that answers cannot be used, and the cure. */
export function startProblem(error: Error): string {
  if (/unknown command/i.test(error.message)) return 'this server has no Functions: Redis 7.0 or newer is needed.';
  if (isLoadingForbidden(error))
    return (
      'Redis lacks our functions, and the user lacks rights to load them: ' +
      'let `tollgate redis load --keep` run, with a user of its own.'
    );
  if (isRightMissing(error))
    return (
      `the user lacks rights (${error.message}): ` +
      '`tollgate redis rights` shows what the user of each service needs.'
    );
  return `Redis does not take our functions (${error.message}).`;
}

/**
 * Of two errors of a connection, the newer one, unless that says less: that there is no connection, or that it broke. A
 * server that refuses TLS may end the connection before the client has read why.
 */
export function newerReason(before: Error | undefined, error: Error): Error {
  if (before === undefined) return error;
  const isBreak = /^(ECONNRESET|EPIPE)$/.test((error as NodeJS.ErrnoException).code ?? '');
  return reasonOf(error) === '' || (isBreak && tlsRefusal(before) !== undefined) ? before : error;
}

/** "Not writable" and "max retries" only repeat that there is no connection. */
function reasonOf({ message }: Error): string {
  return /enableOfflineQueue|maxRetriesPerRequest/.test(message) ? '' : `: ${message}`;
}

function innermost(error: Error & { lastNodeError?: Error }): Error {
  return error.lastNodeError ?? error;
}
