import { type FailedAttempt, MAX_FAILED_ATTEMPTS } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import type { CatalogModel } from '../catalog/catalog';
import { Attempt, type AttemptOwner } from './attempt';
import { choose, soonestSeconds, urlOf } from './backend-choice';
import { fallbacks, retries } from './backend-metrics';
import { type AnswerSink, headersFor, type Resources, type UpstreamCall } from './call';
import type { UpstreamLimits } from './connections';
import { GatheredChunks } from './gathered-chunks';
import { failedAttempt, mayHelpElsewhere, type Progress, type UpstreamFailure } from './failure';
import type { ManagedBackend, Pool } from './fleet';
import { QueuePlace } from './queue-place';
import { sooner } from './retry-after';
import type { Waiting } from './wait-queue';

/** Attempts per request, in total: at other backends, and over new connections. */
const MAX_ATTEMPTS = 3;
/** A new connection cannot be stale. If it closes too, the backend closes requests that it has begun. */
const MAX_STALE_REPEATS = 1;
const NOTHING_TRIED: readonly ManagedBackend[] = [];

/**
 * One request to a model. It asks a backend (backend-choice.ts), and others if that may help, while nothing has reached
 * the client.
 *
 * The hold pays for one run, which limits the attempts:
 * - A request that a backend may have begun is tried once more at most, on another backend.
 * - A request that was surely not begun (no connection, 429, 401, or 503 at once) goes to other backends, up to
 *   MAX_ATTEMPTS.
 * - A kept connection that the backend was closing is replaced once.
 * - All but the last need the model's retry budget, and time: one limit holds for all attempts together.
 * - When the model cannot serve, its fallbacks are asked in turn, each like a model of its own. Once a backend may have
 *   begun the request, each gets one attempt.
 *
 * States: waiting (no head yet; for a place or for an answer) → answering → ended. A failed answer goes back to
 * waiting. `abort` ends it in any state, also before the connection is open.
 */
export class Exchange implements AttemptOwner, Waiting {
  /** The model that is asked now: the call's, or one of its fallbacks. */
  model: CatalogModel;
  private pool: Pool;
  private place: QueuePlace;
  private fallbacksAsked = 0;
  private tried: ManagedBackend[] | null = null;
  private attempt: Attempt | null = null;
  private attempts = 0;
  private staleRepeats = 0;
  /** A backend may have worked on the request: at most one more attempt follows. */
  private mayHaveBegun = false;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private readonly startedAtMs = performance.now();
  private deadlineMs = Infinity;
  /** Nothing of the answer's body has come. */
  private isEmpty = true;
  /** The attempt's backend is the last one in `begun`. */
  private isNoted = false;
  /** Why the last attempt failed. */
  private failure: UpstreamFailure | null = null;
  /** The soonest of what busy backends said, in seconds. */
  private retryAfter: number | null = null;
  /** Names of the backends that may have begun the request, in the order asked. If one answers, it is the last. */
  readonly begun: string[] = [];
  /** The attempts that failed, in the order asked, without those over a stale connection. Null: none did. */
  failed: FailedAttempt[] | null = null;
  private gathered: GatheredChunks | null = null;

  constructor(
    private readonly upstream: Resources,
    private readonly limits: UpstreamLimits,
    private readonly call: UpstreamCall,
    private readonly sink: AnswerSink,
  ) {
    this.model = call.model;
    this.pool = upstream.fleet.poolOf(call.model);
    this.place = new QueuePlace(this, this.pool, call.model);
  }

  /** The backend asked last, for the log. Empty if none was. */
  get backendUrl(): string {
    return this.attempt ? urlOf(this.attempt.managed.backend) : '';
  }

  start(): void {
    this.pool.budget.first();
    this.next();
  }

  /** Closes the connection to the backend: the client has left, or the answer is complete. */
  abort(): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.place.leave();
    this.attempt?.drop();
  }

  pause(): void {
    if (this.state !== 'ended') this.attempt?.pause();
  }

  resume(): void {
    if (this.state !== 'ended') this.attempt?.resume();
  }

  /** The sink found output in the answer: the backend works. */
  delivering(): void {
    this.attempt?.tell('succeeded');
  }

  /** The sink cannot use the answer, and has passed on nothing of it. Another attempt follows, or `onFailure`, or it returns false. */
  reject(failure: UpstreamFailure): boolean {
    if (this.state !== 'answering') return false;
    this.attempt?.tell('failed');
    this.attempt?.drop();
    this.onFailed(failure, 'may_have_begun');
    return true;
  }

  onWritten(): void {
    this.begun.push(this.attempt!.managed.engine.name);
    this.isNoted = true;
  }

  onHead(): void {
    this.state = 'answering';
    this.sink.onHead();
  }

  onData(chunk: Buffer): void {
    if (this.deadlineMs !== Infinity && performance.now() > this.deadlineMs)
      return void this.reject({ kind: 'timeout' });
    this.isEmpty = false;
    if (this.gathered) this.gathered.add(chunk);
    else this.pass(chunk);
  }

  onAnswered(): void {
    this.gathered?.flush();
    if (this.state !== 'answering') return;
    if (this.isEmpty && !this.call.stream) return void this.reject({ kind: 'failed', reason: 'the answer is empty' });
    this.sink.onEnd();
    // The sink may have rejected the answer.
    if (this.state !== 'answering') return;
    this.state = 'ended';
    this.attempt?.tell('succeeded');
  }

  onFailed(failure: UpstreamFailure, progress: Progress): void {
    this.gathered?.endTurn();
    if (this.state === 'ended') return;
    const { managed, mayHaveBegun } = this.attempt!;
    if (this.isNoted && !mayHaveBegun) this.begun.pop();
    this.isNoted = false;
    if (failure.kind === 'busy') this.retryAfter = sooner(this.retryAfter, failure.retryAfterSeconds);
    const mayGoOn = this.attempts < MAX_ATTEMPTS;
    if (mayGoOn && progress === 'stale' && this.staleRepeats < MAX_STALE_REPEATS) {
      this.staleRepeats += 1;
      return this.soon(() => this.ask(managed));
    }
    if (this.failed === null || this.failed.length < MAX_FAILED_ATTEMPTS)
      (this.failed ??= []).push(failedAttempt(failure, managed.engine.name));
    (this.tried ??= []).push(managed);
    if (!mayGoOn || this.mayHaveBegun || !mayHelpElsewhere(failure)) return this.end(failure);
    if (progress !== 'not_begun') {
      this.mayHaveBegun = true;
      const url = urlOf(managed.backend);
      for (const other of this.pool.backends) if (urlOf(other.backend) === url) this.tried.push(other);
    }
    this.retry(failure, progress);
  }

  onReleased({ managed }: Attempt): void {
    this.upstream.fleet.released(managed.engine);
  }

  onUnreachable(managed: ManagedBackend): void {
    this.upstream.lookFor(managed);
  }

  onPlace(): boolean {
    const chosen = this.choose(performance.now());
    if (chosen === 'full') return false;
    this.place.leave();
    this.go(chosen);
    return true;
  }

  onTimeout(): void {
    this.place.leave();
    this.endUnasked();
  }

  /** Asks a backend that was not tried yet, or waits for its place. */
  private next(): void {
    const nowMs = performance.now();
    const chosen = this.choose(nowMs);
    if (chosen === 'full') return this.place.take(nowMs) ? undefined : this.endUnasked();
    // Backends that will probably fail are asked if there is nothing better, and a fallback is better.
    if (!chosen?.isGood(nowMs) && this.fallBack(this.failure, nowMs)) return;
    this.go(chosen);
  }

  private choose(nowMs: number): ManagedBackend | 'full' | null {
    return choose(this.pool.backends, this.tried ?? NOTHING_TRIED, nowMs, this.call.affinity);
  }

  private go(chosen: ManagedBackend | null): void {
    if (chosen === null) return this.endUnasked();
    this.ask(chosen);
  }

  private ask(managed: ManagedBackend): void {
    const { call, limits, upstream } = this;
    const { timeouts } = managed.backend;
    this.deadlineMs = this.startedAtMs + (timeouts.totalMs ?? (call.stream ? Infinity : limits.plainTotalTimeoutMs));
    const leftMs = Math.max(1, Math.ceil(this.deadlineMs - performance.now()));
    const headMs = timeouts.firstByteMs ?? (call.stream ? limits.streamHeadTimeoutMs : limits.plainHeadTimeoutMs);
    this.attempts += 1;
    this.isEmpty = true;
    const attempt = new Attempt(this, managed, upstream.connections, {
      path: call.path,
      stream: call.stream,
      headers: headersFor(managed.backend, call),
      body: call.body(managed.backend, this.model),
      headTimeoutMs: Math.min(headMs, leftMs),
      idleTimeoutMs: Math.min(timeouts.idleMs ?? limits.idleTimeoutMs, leftMs),
      staleCloseMs: limits.staleCloseMs,
    });
    this.attempt = attempt;
    if (call.stream)
      this.gathered = new GatheredChunks(
        (block) => this.attempt === attempt && this.pass(block),
        (error) => attempt.abort(error),
      );
    attempt.start();
  }

  private pass(data: Buffer): void {
    if (this.state === 'answering' && !this.sink.onData(data) && this.state === 'answering') this.pause();
  }

  private retry(failure: UpstreamFailure, progress: Progress): void {
    const nowMs = performance.now();
    const { model } = this;
    if (nowMs >= this.deadlineMs || choose(this.pool.backends, this.tried!, nowMs) === null) return this.end(failure);
    if (!this.pool.budget.take(nowMs)) {
      retries.inc({ model: model.id, result: 'over_budget' });
      return this.end(failure);
    }
    if (this.state === 'answering' && !this.sink.restart()) return this.end(failure);
    retries.inc({ model: model.id, result: 'made' });
    logger('gateway').warn(
      { ...this.call.request.logged, backend: this.backendUrl, progress, ...failure },
      'a backend failed; asking another',
    );
    this.failure = failure;
    this.state = 'waiting';
    this.soon(() => this.next());
  }

  /** Continues outside of the parser's callback: undici runs one parser per process at a time. */
  private soon(go: () => void): void {
    queueMicrotask(() => this.state === 'waiting' && go());
  }

  /** No backend can be asked (any more). */
  private endUnasked(): void {
    this.end(this.failure ?? { kind: 'busy', retryAfterSeconds: null });
  }

  /** Asks the next fallback instead of this model. False: there is none, or no time. */
  private fallBack(failure: UpstreamFailure | null, nowMs: number): boolean {
    const { call, upstream, model } = this;
    const next = call.fallbacks[this.fallbacksAsked];
    if (!next || nowMs >= this.deadlineMs || (failure !== null && !mayHelpElsewhere(failure))) return false;
    if (this.state === 'answering' && !this.sink.restart()) return false;
    this.state = 'waiting';
    this.place.leave();
    fallbacks.inc({ model: model.id, fallback: next.id });
    logger('gateway').warn(
      { ...call.request.logged, fallback: next.id, ...failure },
      'no backend of a model can serve; asking its fallback',
    );
    this.fallbacksAsked += 1;
    this.model = next;
    this.pool = upstream.fleet.poolOf(next);
    this.place = new QueuePlace(this, this.pool, next);
    this.tried = null;
    this.attempts = this.staleRepeats = 0;
    this.pool.budget.first();
    this.sink.onFallback(next);
    this.soon(() => this.next());
    return true;
  }

  private end(failure: UpstreamFailure): void {
    if (this.fallBack(failure, performance.now())) return;
    this.state = 'ended';
    if (failure.kind !== 'busy') return this.sink.onFailure(failure);
    const soonest = soonestSeconds(this.pool.backends, this.tried ?? NOTHING_TRIED, performance.now());
    this.sink.onFailure({ kind: 'busy', retryAfterSeconds: sooner(this.retryAfter, soonest) });
  }
}
