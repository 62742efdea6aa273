import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import { RequestError, UnavailableError } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { CONSOLE_ERRORS, ConsoleError, type ConsoleErrorCode } from './errors';

/** Codes for errors of the HTTP layer, whose own messages are not public. */
const CODE_OF_STATUS: Readonly<Record<number, ConsoleErrorCode>> = {
  400: 'invalid_request',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
};

/** The error that the caller sees. An unknown error is `internal_error`. */
export function publicError(error: unknown): ConsoleError {
  if (error instanceof ConsoleError) return error;
  if (error instanceof UnavailableError) return new ConsoleError('unavailable', undefined, { 'retry-after': '1' });
  if (error instanceof RequestError && Object.hasOwn(CONSOLE_ERRORS, error.code))
    return new ConsoleError(error.code as ConsoleErrorCode, error.publicMessage);
  return new ConsoleError(CODE_OF_STATUS[statusOf(error)] ?? 'internal_error');
}

/** Answers with `{ error: { code, message, requestId } }`, the envelope of every error of the console. */
export function sendError(error: unknown, reply: FastifyReply): void {
  const shown = publicError(error);
  const { status } = CONSOLE_ERRORS[shown.code];
  const requestId = reply.request.id;
  if (status === 500) logger('console').error({ requestId, err: error }, 'answered 500');
  else if (status === 503) logger('console').warn({ requestId, reason: String(error) }, 'answered 503');
  void reply
    .code(status)
    .headers({ ...shown.headers })
    .send({ error: { code: shown.code, message: shown.message, requestId } });
}

/** The exception filter of all controllers. */
@Catch()
export class EnvelopeFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): void {
    sendError(error, host.switchToHttp().getResponse<FastifyReply>());
  }
}

function statusOf(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  if (typeof error === 'object' && error !== null && 'statusCode' in error && typeof error.statusCode === 'number')
    return error.statusCode;
  return 500;
}
