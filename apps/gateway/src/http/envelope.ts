import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { type ErrorTable, foreignError, logger } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { ApiError } from './api-error';
import { errorHeaders } from './error-headers';

interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body: { error: { code: string; message: string } };
}

function codeOfStatus(status: number): string {
  if (status === 503) return 'unavailable';
  return status >= 400 && status < 500 ? 'not_found' : 'internal_error';
}

/**
 * The answer to an error, in the envelope `{ error: { code, message } }`. It shows the message of the table, of an
 * ApiError, or of a RequestError whose code is a client error of the table. Any other error is `internal_error`.
 */
function answerOf(table: ErrorTable, error: unknown): ErrorAnswer {
  if (error instanceof ApiError) return answer(table, error.code, error.publicMessage, error.headers);
  const { code, message } = foreignError(table, error, codeOfStatus);
  return answer(table, code, message);
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
    if (status === 503) logger(component).warn({ requestId, reason: String(error) }, 'answered 503');
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

function answer(table: ErrorTable, code: string, message?: string, headers: Record<string, string> = {}): ErrorAnswer {
  const known = Object.hasOwn(table, code) ? code : 'internal_error';
  const entry = table[known]!;
  const all = { ...headers, ...Object.fromEntries(errorHeaders(entry)) };
  return { status: entry.status, headers: all, body: { error: { code: known, message: message ?? entry.message } } };
}
