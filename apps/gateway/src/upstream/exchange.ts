import { logger } from '@tollgate/runtime';
import type { Dispatcher } from 'undici';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { type Headers, validateAnswerHead } from './answer-head';
import { takeByWeight, urlOf } from './backend-choice';
import type { Connection, Connections, UpstreamLimits } from './connections';
import { GatheredChunks } from './gathered-chunks';
import { failureOfError, failureOfStatus, mayHelpElsewhere, type Progress, type UpstreamFailure } from './failure';

/** Attempts per request, in total: at other backends, and over new connections. */
const MAX_ATTEMPTS = 3;
/** A new connection cannot be stale. If it closes too, the backend closes requests that it has begun. */
const MAX_STALE_REPEATS = 1;
/** 1xx answers, such as early hints. Each restarts the time limit of the head, so their number must be bounded. */
const MAX_INFORMATIONAL_ANSWERS = 16;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
/** For the body of an error answer. */
const ERROR_BODY_TIMEOUT_MS = 5_000;
const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

export interface UpstreamCall {
  model: CatalogModel;
  /** Appended to the backend's base path: `/chat/completions`. */
  path: string;
  stream: boolean;
  /** Builds the body for a backend. */
  body: (backend: Backend) => Buffer | string;
}

/**
 * Receives the answer. Calls come in order: `onHead` at most once, `onData`, then exactly one of `onEnd` and
 * `onFailure`. None comes after `abort`.
 */
export interface AnswerSink {
  /** A 2xx head arrived: there will be no other attempt. */
  onHead(): void;
  /** Returns false to get no more data until `resume`. A stream's chunk is valid during the call only. */
  onData(chunk: Buffer): boolean;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

/**
 * One request to a model. It asks a backend chosen by weight, and others if that may help, until an answer begins. This
 * object is undici's dispatch handler, without streams, signals or promises in between.
 *
 * The hold pays for one run, which limits the attempts:
 * - A request that a backend may have begun is tried once more at most, on another backend.
 * - A request that was surely not begun (no connection, 429, or 503 at once) goes to other backends, up to
 *   MAX_ATTEMPTS.
 * - A kept connection that the backend was closing is replaced once.
 *
 * States: waiting (no head yet, attempts may follow) → answering → ended. `abort` ends it in any state, also before the
 * connection is open.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  private untried: Backend[];
  private backend!: Backend;
  private connection: Connection | null = null;
  /** The request was written to a kept connection. */
  private writtenToKept = false;
  /** Just before the request was written, by `performance.now()`. */
  private writtenAtMs = 0;
  private answerBegan = false;
  private informational = 0;
  private controller: Dispatcher.DispatchController | null = null;
  private attempts = 0;
  private staleRepeats = 0;
  /** A backend may have worked on the request: at most one more attempt follows. */
  private mayHaveBegun = false;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private errorStatus = 0;
  /** By its status, the backend was too busy to begin. */
  private refusedUnbegun = false;
  private retryAfter: string | undefined;
  private errorBody: Buffer[] = [];
  private errorBytes = 0;
  private errorTimer: NodeJS.Timeout | null = null;
  /** Why a 2xx answer cannot be used, by its head. */
  private unreadable: string | null = null;
  /** Names of the backends that may have begun the request, in the order asked. If one answers, it is the last. */
  readonly begun: string[] = [];
  private readonly gathered = new GatheredChunks(
    (block) => this.pass(block),
    (error) => this.controller?.abort(error),
  );

  constructor(
    private readonly connections: Connections,
    private readonly limits: UpstreamLimits,
    private readonly call: UpstreamCall,
    private readonly sink: AnswerSink,
  ) {
    this.untried = [...call.model.backends];
  }

  /** The backend asked last, for the log. */
  get backendUrl(): string {
    return urlOf(this.backend);
  }

  start(): void {
    this.backend = takeByWeight(this.untried);
    this.attempt();
  }

  /** Closes the connection to the backend: the client has left, or the answer is complete. */
  abort(): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    // Before the connection is open there is no controller. Then onRequestStart aborts.
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

  /** The first byte of an answer arrived. */
  onResponseStarted(): void {
    this.answerBegan = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.state === 'ended') return;
    if (status < 200) {
      this.informational += 1;
      if (this.informational > MAX_INFORMATIONAL_ANSWERS) controller.abort(new Error('too many informational answers'));
      return;
    }
    if (status >= 300) {
      this.errorStatus = status;
      // A proxy also answers 503 when its engine dies during the work.
      this.refusedUnbegun = status === 429 || (status === 503 && this.tooSoonForWork());
      this.retryAfter = headers['retry-after'] as string | undefined;
      this.errorTimer = setTimeout(
        () => controller.abort(new Error('the error body is too slow')),
        ERROR_BODY_TIMEOUT_MS,
      );
      return;
    }
    this.unreadable = validateAnswerHead(headers, this.call.stream);
    if (this.unreadable !== null) return controller.abort(new Error(this.unreadable));
    this.state = 'answering';
    this.sink.onHead();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.state === 'ended') return;
    if (this.errorStatus === 0) return this.call.stream ? this.gathered.add(chunk) : this.pass(chunk);
    if (this.errorBytes < MAX_ERROR_BODY_BYTES) this.errorBody.push(chunk);
    this.errorBytes += chunk.length;
    if (this.errorBytes >= MAX_ERROR_BODY_BYTES) controller.abort(new Error('the error body is too long'));
  }

  onResponseEnd(): void {
    if (this.connection) this.connection.kept = true;
    this.giveBack();
    if (this.errorStatus === 0) this.passRest();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0) return this.failByStatus(Buffer.concat(this.errorBody).toString('utf8'));
    this.state = 'ended';
    this.sink.onEnd();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.giveBack();
    this.gathered.endTurn();
    if (this.state === 'ended') return;
    if (this.errorStatus !== 0) return this.failByStatus('');
    const failure: UpstreamFailure =
      this.unreadable === null ? failureOfError(error) : { kind: 'failed', reason: this.unreadable };
    this.fail(failure, this.controller === null ? 'not_begun' : this.wasStale(failure) ? 'stale' : 'may_have_begun');
  }

  private pass(data: Buffer): void {
    if (this.state !== 'ended' && !this.sink.onData(data)) this.pause();
  }

  /** The connection may serve another request now, so the sink can no longer pause or abort it. */
  private passRest(): void {
    this.controller = null;
    this.gathered.flush();
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
   * Whether the backend had closed the kept connection before it saw the request: no byte of an answer came, and the
   * close came too soon for any work.
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

  /**
   * Whether the request was written too recently for any work. A slow machine measures too much time, never too little.
   */
  private tooSoonForWork(): boolean {
    return performance.now() - this.writtenAtMs <= this.limits.staleCloseMs;
  }

  private failByStatus(body: string): void {
    const failure = failureOfStatus(this.errorStatus, this.retryAfter, body, this.backend.authorization);
    this.fail(failure, this.refusedUnbegun ? 'not_begun' : 'may_have_begun');
  }

  private fail(failure: UpstreamFailure, progress: Progress): void {
    // A backend that refused a request did not begin it.
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

  /** Starts the next attempt outside of the parser's callback: undici runs one parser per process at a time. */
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
