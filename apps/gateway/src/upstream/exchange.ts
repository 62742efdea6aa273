import { logger } from '@tollgate/runtime';
import type { Dispatcher } from 'undici';
import type { Backend, CatalogModel } from '../catalog/catalog';
import type { Connection, Connections, UpstreamLimits } from './connections';
import { failureOfError, failureOfStatus, mayHelpElsewhere, type Progress, type UpstreamFailure } from './failure';

/** Requests sent for one request, in all: to other backends, and over a new connection in place of a stale one. */
const MAX_ATTEMPTS = 3;
/** A new connection is not stale; should it look so, the backend closes what it has begun. */
const MAX_STALE_REPEATS = 1;
/** Early hints and the like. Each puts off the time limit of the head, so a flood of them would never end. */
const MAX_INFORMATIONAL_ANSWERS = 16;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
/** For the words of an error whose status is known. */
const ERROR_BODY_TIMEOUT_MS = 5_000;
const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i;
const JSON_TYPE = /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

export interface UpstreamCall {
  model: CatalogModel;
  /** After the backend's base path: `/chat/completions`. */
  path: string;
  stream: boolean;
  /** The body for a backend. */
  body: (backend: Backend) => Buffer | string;
}

/**
 * Who gets the answer. Calls come in order: `onHead` at most once, data, then exactly one of `onEnd` and `onFailure`;
 * none after `abort`.
 */
export interface AnswerSink {
  /** A 2xx: from here on there is no other attempt. */
  onHead(): void;
  /** False: no more until `resume`. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

/**
 * One request to a model: a backend by weight, another one where that may help, until an answer begins. undici's
 * dispatch with this object as the handler: no streams, no signals, no promises in between.
 *
 * The hold pays for one run. So what a backend may have begun is tried again at most once, and on another backend; what
 * was surely not begun (no connection, 429, a 503 that came at once) goes to the others, as far as MAX_ATTEMPTS
 * reaches; a kept connection that the backend was just closing is replaced once.
 *
 * States: waiting (no head yet; attempts may follow) → answering → ended; `abort` ends it from anywhere, also before
 * the connection stands.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  private untried: Backend[];
  private backend!: Backend;
  private connection: Connection | null = null;
  /** The connection was a kept one when the request was written to it. */
  private writtenToKept = false;
  /** From before the request is written, by the monotonic clock. */
  private writtenAtMs = 0;
  private answerBegan = false;
  private informational = 0;
  private controller: Dispatcher.DispatchController | null = null;
  private attempts = 0;
  private staleRepeats = 0;
  /** One backend may have done the work: there is one more attempt at the most. */
  private mayHaveBegun = false;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private errorStatus = 0;
  /** The status says that the backend was too busy to begin. */
  private refusedUnbegun = false;
  private retryAfter: string | undefined;
  private errorBody: Buffer[] = [];
  private errorBytes = 0;
  private errorTimer: NodeJS.Timeout | null = null;
  /** A 2xx with a head that is no answer to what was asked. */
  private unreadable: string | null = null;
  /** Names of the backends that may have begun the request, in the order asked: the last one is who answers. */
  readonly begun: string[] = [];

  constructor(
    private readonly connections: Connections,
    private readonly limits: UpstreamLimits,
    private readonly call: UpstreamCall,
    private readonly sink: AnswerSink,
  ) {
    this.untried = [...call.model.backends];
  }

  /** The one asked last: for the log. */
  get backendUrl(): string {
    return urlOf(this.backend);
  }

  start(): void {
    this.backend = takeByWeight(this.untried);
    this.attempt();
  }

  /** The client has gone, or the answer is at its end: the backend is told by closing the connection. */
  abort(): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    // Before the connection stands there is no controller: onRequestStart aborts then.
    this.controller?.abort(new Error('aborted by the gateway'));
  }

  pause(): void {
    if (this.state !== 'ended') this.controller?.pause();
  }

  resume(): void {
    if (this.state !== 'ended') this.controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.state === 'ended') return controller.abort(new Error('aborted by the gateway'));
    this.begun.push(this.backend.name);
    this.writtenToKept = this.connection?.kept ?? false;
    this.writtenAtMs = performance.now();
  }

  /** The first byte of an answer. */
  onResponseStarted(): void {
    this.answerBegan = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.state === 'ended') return;
    if (status < 200) {
      this.informational += 1;
      if (this.informational > MAX_INFORMATIONAL_ANSWERS) controller.abort(new Error('informational answers only'));
      return;
    }
    if (status >= 300) {
      this.errorStatus = status;
      // A proxy says 503 too when its engine has gone in the middle of the work.
      this.refusedUnbegun = status === 429 || (status === 503 && this.tooSoonForWork());
      this.retryAfter = headers['retry-after'] as string | undefined;
      this.errorTimer = setTimeout(() => controller.abort(new Error('the error is too slow')), ERROR_BODY_TIMEOUT_MS);
      return;
    }
    this.unreadable = whyUnreadable(headers, this.call.stream);
    if (this.unreadable !== null) return controller.abort(new Error(this.unreadable));
    this.state = 'answering';
    this.sink.onHead();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.state === 'ended') return;
    if (this.errorStatus === 0) {
      if (!this.sink.onData(chunk)) controller.pause();
      return;
    }
    if (this.errorBytes < MAX_ERROR_BODY_BYTES) this.errorBody.push(chunk);
    this.errorBytes += chunk.length;
    if (this.errorBytes >= MAX_ERROR_BODY_BYTES) controller.abort(new Error('the error is too long'));
  }

  onResponseEnd(): void {
    if (this.connection) this.connection.kept = true;
    this.giveBack();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0) return this.failByStatus(Buffer.concat(this.errorBody).toString('utf8'));
    this.state = 'ended';
    this.sink.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.giveBack();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0) return this.failByStatus('');
    const failure: UpstreamFailure =
      this.unreadable === null ? failureOfError(error) : { kind: 'failed', reason: this.unreadable };
    this.fail(failure, this.controller === null ? 'not_begun' : this.wasStale(failure) ? 'stale' : 'may_have_begun');
  }

  private attempt(): void {
    this.attempts += 1;
    this.controller = null;
    this.writtenToKept = false;
    this.answerBegan = false;
    this.informational = 0;
    this.errorStatus = 0;
    this.refusedUnbegun = false;
    this.errorBody = [];
    this.errorBytes = 0;
    this.unreadable = null;
    this.connection = this.connections.take(this.backend.origin);
    if (!this.connection) return this.fail({ kind: 'busy', retryAfterSeconds: null }, 'not_begun');
    const headers = [
      'content-type',
      'application/json',
      'accept',
      this.call.stream ? 'text/event-stream' : 'application/json',
    ];
    if (this.backend.authorization !== null) headers.push('authorization', this.backend.authorization);
    this.connection.client.dispatch(
      {
        path: this.backend.basePath + this.call.path,
        method: 'POST',
        headers,
        body: this.call.body(this.backend),
        headersTimeout: this.call.stream ? this.limits.streamHeadTimeoutMs : this.limits.plainHeadTimeoutMs,
        bodyTimeout: this.limits.idleTimeoutMs,
      },
      this,
    );
  }

  /**
   * The backend had closed the kept connection before it saw the request: not a byte of an answer, and too soon after
   * the request for any work.
   */
  private wasStale(failure: UpstreamFailure): boolean {
    return (
      this.writtenToKept &&
      !this.answerBegan &&
      failure.kind === 'failed' &&
      CLOSED_BY_PEER.has(failure.reason) &&
      this.tooSoonForWork()
    );
  }

  /** A slow machine only ever takes what was soon for late. */
  private tooSoonForWork(): boolean {
    return performance.now() - this.writtenAtMs <= this.limits.staleCloseMs;
  }

  private failByStatus(body: string): void {
    const failure = failureOfStatus(this.errorStatus, this.retryAfter, body, this.backend.authorization);
    this.fail(failure, this.refusedUnbegun ? 'not_begun' : 'may_have_begun');
  }

  private fail(failure: UpstreamFailure, progress: Progress): void {
    // What it refused, it did not begin.
    const refused = this.errorStatus >= 400 && this.errorStatus < 500 && failure.kind !== 'timeout';
    if (this.controller !== null && (progress !== 'may_have_begun' || refused)) this.begun.pop();
    if (this.state !== 'waiting' || this.attempts >= MAX_ATTEMPTS) return this.end(failure);
    if (progress === 'stale' && this.staleRepeats < MAX_STALE_REPEATS) {
      this.staleRepeats += 1;
      return this.attemptSoon();
    }
    if (this.mayHaveBegun || !mayHelpElsewhere(failure, progress)) return this.end(failure);
    if (progress !== 'not_begun') {
      this.mayHaveBegun = true;
      this.untried = this.untried.filter((other) => urlOf(other) !== urlOf(this.backend));
    }
    if (this.untried.length === 0) return this.end(failure);
    logger('gateway').warn(
      { model: this.call.model.id, backend: this.backendUrl, progress, ...failure },
      'a backend failed; asking another',
    );
    this.backend = takeByWeight(this.untried);
    this.attemptSoon();
  }

  /** Not from within the callback of the last attempt's parser: undici has one parser at work in a process. */
  private attemptSoon(): void {
    this.controller = null;
    queueMicrotask(() => this.state === 'waiting' && this.attempt());
  }

  private end(failure: UpstreamFailure): void {
    this.state = 'ended';
    this.sink.onFailure(failure);
  }

  private giveBack(): void {
    if (this.errorTimer) clearTimeout(this.errorTimer);
    this.errorTimer = null;
    if (this.connection) this.connections.give(this.backend.origin, this.connection);
    this.connection = null;
  }
}

function urlOf({ origin, basePath }: Backend): string {
  return origin + basePath;
}

/**
 * Why a 2xx with this head is not what was asked for, or null. Without a content type it is taken for what it should
 * be.
 */
function whyUnreadable(headers: Headers, stream: boolean): string | null {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return 'the answer is compressed, which was not asked for';
  const type = headers['content-type'];
  if (type === undefined) return null;
  const wanted = stream ? EVENT_STREAM : JSON_TYPE;
  return wanted.test(String(type)) ? null : `the answer is no ${stream ? 'event stream' : 'JSON'} by its content type`;
}

/** Takes one backend out of the list, at random by weight. */
export function takeByWeight(backends: Backend[], random = Math.random()): Backend {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  let left = random * total;
  const index = backends.findIndex(({ weight }) => (left -= weight) < 0);
  return backends.splice(index === -1 ? backends.length - 1 : index, 1)[0]!;
}
