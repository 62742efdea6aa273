import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { UnavailableError } from '@tollgate/contracts';
import { isOutage } from '@tollgate/postgres';
import { foreignError, logger } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { CONSOLE_ERRORS, ConsoleError, type ConsoleErrorCode } from './errors';

/** Not in the table, because PostgreSQL or a service answers again soon. Other `unavailable` answers name no time. */
const RETRY = { 'retry-after': '1' };

/** 401: the sign-in library found that a session has just ended. */
const CODES: Readonly<Record<number, ConsoleErrorCode>> = { 400: 'invalid_request', 401: 'unauthenticated' };
const codeOfStatus = (status: number): ConsoleErrorCode => CODES[status] ?? 'internal_error';

/** The error that the caller sees. An unknown error is `internal_error`. */
export function publicError(error: unknown): ConsoleError {
  if (error instanceof ConsoleError) return error;
  if (isOutage(error)) return new ConsoleError('unavailable', undefined, RETRY);
  const { code, message } = foreignError(CONSOLE_ERRORS, error, codeOfStatus);
  return new ConsoleError(code as ConsoleErrorCode, message, error instanceof UnavailableError ? RETRY : {});
}

/**
 * Answers with `{ error: { code, message, requestId } }`, the envelope of every error of the console. The gateway's has
 * another body, other headers and other log lines, so the two share only `foreignError`.
 */
export function sendError(error: unknown, reply: FastifyReply): void {
  const shown = publicError(error);
  const { status } = CONSOLE_ERRORS[shown.code];
  const requestId = reply.request.id;
  if (status === 500) logger('console').error({ requestId, err: error }, 'answered 500');
  else if (status === 503) logger('console').warn({ requestId, reason: reasonOf(error) }, 'answered 503');
  void reply
    .code(status)
    .headers({ ...shown.headers })
    .send({ error: { code: shown.code, message: shown.message, requestId } });
}

/** If a host has several addresses and none answers, only the errors in the error say why. */
const reasonOf = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(String).join(', ') : String(error);

/** The exception filter of all controllers. */
@Catch()
export class EnvelopeFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    sendError(error, host.switchToHttp().getResponse<FastifyReply>());
  }
}
