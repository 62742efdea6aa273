import { type FailedAttempt, MAX_FAILED_ATTEMPTS } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import type { Backend } from '../catalog/catalog';
import { Attempt, type AttemptOwner } from './attempt';
import { choose, soonestSeconds, urlOf } from './backend-choice';
import { queued, retries } from './backend-metrics';
import type { AnswerSink, Resources, UpstreamCall } from './call';
import type { UpstreamLimits } from './connections';
import { GatheredChunks } from './gathered-chunks';
import { failedAttempt, mayHelpElsewhere, type Progress, type UpstreamFailure } from './failure';
import type { ManagedBackend, Pool } from './fleet';
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
 *
 * States: waiting (no head yet; for a place or for an answer) → answering → ended. A failed answer goes back to
 * waiting. `abort` ends it in any state, also before the connection is open.
 */
export class Exchange implements AttemptOwner, Waiting {
  private readonly pool: Pool;
  private tried: ManagedBackend[] | null = null;
  private attempt: Attempt | null = null;
  private attempts = 0;
  private staleRepeats = 0;
  /** A backend may have worked on the request: at most one more attempt follows. */
  private mayHaveBegun = false;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private readonly startedAtMs = performance.now();
  private deadlineMs = Infinity;
  private queuedUntilMs = 0;
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
    this.pool = upstream.fleet.poolOf(call.model);
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
    this.leaveQueue();
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
    this.leaveQueue();
    this.go(chosen);
    return true;
  }

  onTimeout(): void {
    this.leaveQueue();
    this.endUnasked();
  }

  /** Asks a backend that was not tried yet, or waits for its place. */
  private next(): void {
    const nowMs = performance.now();
    const chosen = this.choose(nowMs);
    if (chosen === 'full') return this.wait(nowMs);
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
      body: call.body(managed.backend),
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
    const { model } = this.call;
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

  private wait(nowMs: number): void {
    const { queue, backends } = this.pool;
    const { maxRequests, maxWaitMs } = this.call.model.queue;
    this.queuedUntilMs ||= nowMs + maxWaitMs;
    const leftMs = this.queuedUntilMs - nowMs;
    if (leftMs <= 0 || !queue.add(this, { maxRequests, maxWaitMs: leftMs })) return this.endUnasked();
    queued.set({ model: this.call.model.id }, queue.length);
    for (const { engine } of backends) engine.queues.add(queue);
  }

  private leaveQueue(): void {
    if (this.queuedUntilMs === 0) return;
    const { queue, backends } = this.pool;
    queue.remove(this);
    queued.set({ model: this.call.model.id }, queue.length);
    if (queue.length === 0) for (const { engine } of backends) engine.queues.delete(queue);
  }

  /** No backend can be asked (any more). */
  private endUnasked(): void {
    this.end(this.failure ?? { kind: 'busy', retryAfterSeconds: null });
  }

  private end(failure: UpstreamFailure): void {
    this.state = 'ended';
    if (failure.kind !== 'busy') return this.sink.onFailure(failure);
    const soonest = soonestSeconds(this.pool.backends, this.tried ?? NOTHING_TRIED, performance.now());
    this.sink.onFailure({ kind: 'busy', retryAfterSeconds: sooner(this.retryAfter, soonest) });
  }
}

function headersFor({ authorization, headers: own }: Backend, { stream, headers }: UpstreamCall): string[] {
  const all = ['content-type', 'application/json', 'accept', stream ? 'text/event-stream' : 'application/json'];
  if (authorization !== null) all.push('authorization', authorization);
  if (own.length > 0) all.push(...own);
  if (headers.length > 0) all.push(...headers);
  return all;
}
