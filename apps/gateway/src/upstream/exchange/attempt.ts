import type { Dispatcher } from 'undici';
import { type Headers, validateAnswerHead } from './answer-head';
import type { CallResult } from '../fleet/breaker';
import type { Connection, Connections } from '../fleet/connections';
import {
  failureOfError,
  failureOfStatus,
  isBackendsFault,
  isOfEngine,
  type Progress,
  type UpstreamFailure,
} from './failure';
import type { ManagedBackend } from '../fleet/fleet';

/** 1xx answers, such as early hints. Each restarts the time limit of the head, so their number must be bounded. */
const MAX_INFORMATIONAL_ANSWERS = 16;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
/** For the body of an error answer. */
const ERROR_BODY_TIMEOUT_MS = 5_000;
/** The pause of a backend that answered 429 without saying for how long. */
const DEFAULT_REST_SECONDS = 1;
const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
const CONNECT_TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

/** What is sent to the backend. */
export interface AttemptRequest {
  path: string;
  stream: boolean;
  headers: string[];
  body: Buffer | string;
  headTimeoutMs: number;
  idleTimeoutMs: number;
  /** The time limits are shorter than the backend's own ones: see `TotalTime.isShort`. */
  isShort: boolean;
  /** See `UpstreamLimits.staleCloseMs`. */
  staleCloseMs: number;
  /** The request may cause a 500, or an error in an answer. Such a result says nothing about the backend. */
  mayBeAtFault: boolean;
}

/** Receives the events of an attempt: `onHead` at most once, `onData`, then one of `onAnswered` and `onFailed`. */
export interface AttemptOwner {
  /** The request is written to a connection. */
  onWritten(): void;
  onHead(): void;
  onData(chunk: Buffer): void;
  onAnswered(): void;
  onFailed(failure: UpstreamFailure, progress: Progress): void;
  /** The transport has ended; the backend has a place again. Called exactly once, also after `drop`. */
  onReleased(attempt: Attempt): void;
  /** No connection to the backend could be opened: the owner must find out in the background when it is back. */
  onUnreachable(managed: ManagedBackend): void;
}

/**
 * One call of one backend: undici's dispatch handler, without streams, signals or promises in between. An attempt that
 * was dropped tells its owner only of its release.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | null = null;
  /** The request was written to a kept connection. */
  private writtenToKept = false;
  /** Just before the request was written, by `performance.now()`. */
  private writtenAtMs = 0;
  private answerBegan = false;
  private informational = 0;
  /** No body came, nor an error status. Engines that hang may still send the head of a stream. */
  private isSilent = true;
  private dropped = false;
  private errorStatus = 0;
  private retryAfter: string | undefined;
  private errorBody: Buffer[] = [];
  private errorBytes = 0;
  private errorTimer: NodeJS.Timeout | null = null;
  /** Why a 2xx answer cannot be used, by its head. */
  private unreadable: string | null = null;
  /** The circuit breaker knows the result. */
  private isTold = false;
  private readonly wasProbe: boolean;
  private connection: Connection | null;
  /** The request was written, and the backend did not refuse it: it may have worked on it. */
  mayHaveBegun = false;

  constructor(
    private readonly owner: AttemptOwner,
    readonly managed: ManagedBackend,
    private readonly connections: Connections,
    private readonly request: AttemptRequest,
  ) {
    this.connection = connections.take(managed.backend);
    managed.engine.inFlight += 1;
    this.wasProbe = managed.breaker.begin(performance.now());
  }

  start(): void {
    const { connection, request, managed } = this;
    if (!connection) {
      this.tell(null);
      this.owner.onReleased(this);
      return this.owner.onFailed({ kind: 'busy', retryAfterSeconds: null }, 'not_begun');
    }
    connection.client.dispatch(
      {
        path: managed.backend.basePath + request.path,
        method: 'POST',
        headers: request.headers,
        body: request.body,
        headersTimeout: request.headTimeoutMs,
        bodyTimeout: request.idleTimeoutMs,
      },
      this,
    );
  }

  /** Ends the attempt. Its owner learns only of the release. Closes the connection unless the answer has ended. */
  drop(): void {
    if (this.dropped) return;
    this.dropped = true;
    // The connection is not open yet. onRequestStart aborts, or onResponseError learns that it cannot be opened.
    if (this.connection && !this.controller) return;
    if (!this.isTold && this.mayHaveBegun && this.isSilent) this.managed.clientLeft(performance.now());
    this.tell(null);
    this.controller?.abort(new Error('aborted by the gateway'));
  }

  /** Ends the attempt as failed. */
  abort(error: Error): void {
    this.controller?.abort(error);
  }

  pause(): void {
    this.controller?.pause();
  }

  resume(): void {
    this.controller?.resume();
  }

  /** Tells the circuit breaker the result; only the first call counts. Null: the call has no result. */
  tell(result: CallResult | null): void {
    if (this.isTold) return;
    this.isTold = true;
    const { managed, wasProbe } = this;
    if (result === null) return managed.breaker.abandoned(wasProbe);
    if (managed.ended(result, wasProbe, performance.now())) this.owner.onUnreachable(managed);
  }

  /**
   * Tells the circuit breaker that the answer cannot be used.
   * @param isShort the time limits were shorter than the backend's own ones
   */
  tellUnusable({ kind }: UpstreamFailure, isShort: boolean): void {
    const saysNothing = kind === 'timeout' ? isShort : this.request.mayBeAtFault;
    this.tell(saysNothing ? null : 'failed');
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.dropped) {
      this.tell(null);
      return controller.abort(new Error('aborted by the gateway'));
    }
    this.mayHaveBegun = true;
    this.owner.onWritten();
    this.managed.breaker.isSlowToRefuse = false;
    this.writtenToKept = this.connection?.kept ?? false;
    this.writtenAtMs = performance.now();
  }

  /** The first byte of an answer arrived. */
  onResponseStarted(): void {
    if (!this.answerBegan) this.managed.times.began(performance.now() - this.writtenAtMs);
    this.answerBegan = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (this.dropped) return;
    if (status < 200) {
      this.informational += 1;
      if (this.informational > MAX_INFORMATIONAL_ANSWERS) controller.abort(new Error('too many informational answers'));
      return;
    }
    if (status >= 300) {
      this.notSilent();
      this.errorStatus = status;
      // A proxy also answers 503 when its engine dies during the work.
      this.mayHaveBegun = status === 408 || (isOfEngine(status) && !(status === 503 && this.tooSoonForWork()));
      this.retryAfter = headers['retry-after'] as string | undefined;
      this.errorTimer = setTimeout(
        () => controller.abort(new Error('the error body is too slow')),
        ERROR_BODY_TIMEOUT_MS,
      );
      return;
    }
    this.unreadable = validateAnswerHead(headers, this.request.stream);
    if (this.unreadable !== null) return controller.abort(new Error(this.unreadable));
    this.owner.onHead();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.dropped) return;
    if (this.isSilent) this.notSilent();
    if (this.errorStatus === 0) return this.owner.onData(chunk);
    if (this.errorBytes < MAX_ERROR_BODY_BYTES) this.errorBody.push(chunk);
    this.errorBytes += chunk.length;
    if (this.errorBytes >= MAX_ERROR_BODY_BYTES) controller.abort(new Error('the error body is too long'));
  }

  private notSilent(): void {
    this.isSilent = false;
    this.managed.answered();
  }

  onResponseEnd(): void {
    if (this.connection) this.connection.kept = true;
    this.giveBack();
    // The connection may serve another request now, so nobody can pause or abort it any more.
    this.controller = null;
    if (this.dropped) return;
    if (this.errorStatus !== 0) this.failByStatus(Buffer.concat(this.errorBody).toString('utf8'));
    else this.owner.onAnswered();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error & { code?: string }): void {
    this.giveBack();
    const isUnreachable = this.controller === null;
    if (isUnreachable) this.managed.breaker.isSlowToRefuse = CONNECT_TIMEOUTS.has(error.code ?? '');
    if (this.dropped) return this.tell(isUnreachable ? 'unreachable' : null);
    if (this.errorStatus !== 0) return this.failByStatus('');
    const failure: UpstreamFailure =
      this.unreadable === null ? failureOfError(error) : { kind: 'failed', reason: this.unreadable };
    if (isUnreachable) return this.fail(failure, 'not_begun', 'unreachable');
    const result = failure.kind === 'timeout' && this.request.isShort ? null : 'failed';
    if (!this.wasStale(failure)) return this.fail(failure, 'may_have_begun', result);
    this.mayHaveBegun = false;
    this.fail(failure, 'stale', null);
  }

  private failByStatus(body: string): void {
    const { breaker, backend } = this.managed;
    const failure = failureOfStatus(this.errorStatus, this.retryAfter, body, backend.authorization);
    if (failure.kind === 'busy' && (this.errorStatus === 429 || failure.retryAfterSeconds !== null))
      breaker.rest(failure.retryAfterSeconds ?? DEFAULT_REST_SECONDS, performance.now());
    const result = isBackendsFault(failure, this.errorStatus) ? 'failed' : 'succeeded';
    const saysNothing = this.errorStatus === 500 && this.request.mayBeAtFault;
    this.fail(failure, this.mayHaveBegun ? 'may_have_begun' : 'not_begun', saysNothing ? null : result);
  }

  private fail(failure: UpstreamFailure, progress: Progress, result: CallResult | null): void {
    this.tell(result);
    this.owner.onFailed(failure, progress);
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
    return performance.now() - this.writtenAtMs <= this.request.staleCloseMs;
  }

  private giveBack(): void {
    if (this.errorTimer) clearTimeout(this.errorTimer);
    this.errorTimer = null;
    if (!this.connection) return;
    if (this.writtenAtMs > 0) this.managed.times.ended(performance.now() - this.writtenAtMs);
    this.connections.give(this.managed.backend, this.connection);
    this.connection = null;
    this.owner.onReleased(this);
  }
}
