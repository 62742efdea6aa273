import { RequestError, UnavailableError, type ReplyOf, type RequestOf, type Subject } from '@tollgate/contracts';
import { logger, withTimeout } from '@tollgate/runtime';
import { DEFAULT_REQUEST_DEADLINE_MS, type RequestHandler } from './messages';
import { failureOf } from './request-failure';

/**
 * Request–reply between services of one process. Requests and replies go through JSON, as over a broker, so nothing
 * comes to rely on a shared reference, a Date or a bigint. A handler's error other than RequestError is logged here and
 * not passed on.
 */
export class InProcessRequests {
  private readonly handlers = new Map<string, (request: unknown) => Promise<unknown>>();

  handle<S extends Subject>(subject: S, handler: RequestHandler<S>): void {
    if (this.handlers.has(subject)) throw new Error(`"${subject}" has a handler already`);
    this.handlers.set(subject, (request) => handler(request as RequestOf<S>));
  }

  async request<S extends Subject>(
    subject: S,
    request: RequestOf<S>,
    deadlineMs = DEFAULT_REQUEST_DEADLINE_MS,
  ): Promise<ReplyOf<S>> {
    const handler = this.handlers.get(subject);
    if (!handler) throw new UnavailableError(`nobody answers "${subject}"`);
    const late = () => new UnavailableError(`no answer to "${subject}" within ${deadlineMs} ms`);
    return withTimeout(deadlineMs, this.answer(subject, handler, copy(request)), late);
  }

  private async answer<S extends Subject>(
    subject: S,
    handler: (request: unknown) => Promise<unknown>,
    request: RequestOf<S>,
  ): Promise<ReplyOf<S>> {
    try {
      return copy((await handler(request)) as ReplyOf<S>);
    } catch (error) {
      const failure = failureOf(error, subject, logger('messaging'));
      if ('refusal' in failure) throw new RequestError(failure.refusal.code, failure.refusal.message);
      throw new UnavailableError(`"${subject}" could not be answered`);
    }
  }
}

function copy<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
