import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import { RequestError, UnavailableError } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { ApiError, type ErrorTable } from './api-error';
import { errorHeaders } from './error-headers';

interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body: { error: { code: string; message: string } };
}

/** Codes for errors of the HTTP layer, by status. Its own messages are not public. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  503: 'unavailable',
};

/**
 * The answer to an error, in the envelope `{ error: { code, message } }`. It shows the message of the table, of an
 * ApiError, or of a RequestError whose code is a client error of the table. Any other error is `internal_error`.
 */
function answerOf(table: ErrorTable, error: unknown): ErrorAnswer {
  if (error instanceof ApiError) return answer(table, error.code, error.publicMessage, error.headers);
  if (error instanceof UnavailableError) return answer(table, 'unavailable');
  if (error instanceof RequestError) {
    const entry = Object.hasOwn(table, error.code) ? table[error.code] : undefined;
    return entry && entry.status < 500
      ? answer(table, error.code, error.publicMessage)
      : answer(table, 'internal_error');
  }
  const status = httpStatusOf(error);
  const code = CODE_OF_STATUS[status] ?? (status >= 400 && status < 500 ? 'not_found' : 'internal_error');
  return answer(table, code);
}

/**
 * The only exception filter of a surface. It answers each error from the table of the surface, and logs server errors
 * with the request id.
 */
@Catch()
export class EnvelopeFilter implements ExceptionFilter {
  constructor(
    private readonly table: ErrorTable,
    private readonly component: string,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    sendError(this.table, this.component, error, host.switchToHttp().getResponse<FastifyReply>());
  }
}

/** Answers `reply` with the envelope of the error. Also serves errors of the HTTP layer before a route is reached. */
export function sendError(table: ErrorTable, component: string, error: unknown, reply: FastifyReply): void {
  const { status, headers, body } = answerOf(table, error);
  if (status >= 500) {
    const requestId = reply.getHeader('x-request-id');
    // An unavailable dependency is expected, so it logs one line. An unexpected error is logged with its stack.
    if (status === 503) logger(component).warn({ requestId, reason: String(causeOf(error)) }, 'answered 503');
    else logger(component).error({ requestId, err: error }, 'answered 500');
  }
  void reply
    .code(status)
    .headers({ 'cache-control': 'no-store', ...headers })
    .send(body);
}

/** The envelope `{ error: { code, message } }` as JSON, for answers before any route is reached. */
export function envelopeOf(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } });
}

/** The error behind an ApiError, if it has one. */
function causeOf(error: unknown): unknown {
  return error instanceof ApiError && error.cause !== undefined ? error.cause : error;
}

function answer(table: ErrorTable, code: string, message?: string, headers: Record<string, string> = {}): ErrorAnswer {
  const known = Object.hasOwn(table, code) ? code : 'internal_error';
  const entry = table[known]!;
  const all = { ...headers, ...Object.fromEntries(errorHeaders(entry)) };
  return { status: entry.status, headers: all, body: { error: { code: known, message: message ?? entry.message } } };
}

/** Status of a Fastify error (`statusCode`) or a Nest HttpException (`getStatus()`). 500 for other errors. */
function httpStatusOf(error: unknown): number {
  if (typeof error !== 'object' || error === null) return 500;
  if ('statusCode' in error && typeof error.statusCode === 'number') return error.statusCode;
  if (error instanceof HttpException) return error.getStatus();
  return 500;
}
