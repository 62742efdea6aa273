import { logger } from '@tollgate/runtime';
import type { CatalogModel } from '../../catalog/catalog';
import { Attempt, type AttemptOwner } from './attempt';
import { AttemptRecord } from './attempt-record';
import { urlOf } from '../fleet/backend-choice';
import { retries } from '../fleet/backend-metrics';
import { type AnswerSink, attemptRequest, type Resources, type UpstreamCall } from './call';
import type { UpstreamLimits } from '../fleet/connections';
import { FallbackChain } from './fallback-chain';
import { GatheredChunks } from './gathered-chunks';
import { ALL_BUSY, mayHelpElsewhere, type Progress, type UpstreamFailure } from './failure';
import type { ManagedBackend } from '../fleet/fleet';
import { QueuePlace } from '../fleet/queue-place';
import { TotalTime } from './total-time';
import type { Waiting } from '../fleet/wait-queue';

/** Attempts of a request at one model, in total: at other backends, and over new connections. */
const MAX_ATTEMPTS = 3;
/** Attempts of a request that backends may have begun, over all models. */
const MAX_RUNS = 2;
/** A new connection cannot be stale. If it closes too, the backend closes requests that it has begun. */
const MAX_STALE_REPEATS = 1;

/**
 * One request to a model. It asks a backend (fleet/backend-choice.ts), and others if that may help, while nothing has
 * reached the client.
 *
 * The hold pays for one run, which limits the attempts:
 * - A request that a backend may have begun may run once more, on another backend, or at a fallback.
 * - A request that was surely not begun (no connection, 429, 401, or 503 at once) goes to other backends, up to
 *   MAX_ATTEMPTS.
 * - A kept connection that the backend was closing is replaced once.
 * - Each further attempt takes from the retry budget of the model that failed, except new connections. One time limit
 *   holds for all.
 * - When the model cannot serve, its fallbacks are asked in turn (fallback-chain.ts), each like a separate model.
 *   Once a backend may have begun the request, each gets one attempt, and needs the retry budget too.
 *
 * States: waiting (no head yet; for a place or for an answer) → answering → ended. A failed answer goes back to
 * waiting. `abort` ends it in any state, also before the connection is open.
 */
export class Exchange implements AttemptOwner, Waiting {
  private readonly chain: FallbackChain;
  private place: QueuePlace;
  private attempt: Attempt | null = null;
  private attempts = 0;
  private staleRepeats = 0;
  /** Attempts that backends may have begun. After the first one, each model gets one attempt at most. */
  private runs = 0;
  /** The next attempt is taken from a retry budget already. */
  private isPaid = false;
  private state: 'waiting' | 'answering' | 'ended' = 'waiting';
  private readonly time: TotalTime;
  /** Nothing of the answer's body has come. */
  private isEmpty = true;
  /** Why the last attempt failed. */
  private failure: UpstreamFailure | null = null;
  readonly record = new AttemptRecord();
  private gathered: GatheredChunks | null = null;

  constructor(
    private readonly upstream: Resources,
    private readonly limits: UpstreamLimits,
    private readonly call: UpstreamCall,
    private readonly sink: AnswerSink,
  ) {
    this.time = new TotalTime(call.stream ? limits.streamTotalTimeoutMs : limits.plainTotalTimeoutMs);
    this.chain = new FallbackChain(upstream.fleet, call, this.time);
    this.place = this.placeInQueue();
  }

  /** The model that is asked now: the call's, or one of its fallbacks. */
  get model(): CatalogModel {
    return this.chain.model;
  }

  /** A backend of the model has failed it. */
  get hasFailed(): boolean {
    return this.chain.tried.length > 0;
  }

  /** The backend asked last, for the log. Empty if none was. */
  get backendUrl(): string {
    return this.attempt ? urlOf(this.attempt.managed.backend) : '';
  }

  start(): void {
    this.chain.pool.budget.first();
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
    if (this.state === 'ended') return;
    this.time.wasPaused();
    this.attempt?.pause();
  }

  resume(): void {
    if (this.state !== 'ended') this.attempt?.resume();
  }

  /** The sink found output in the answer: the backend works. */
  delivering(): void {
    this.attempt?.tell('succeeded');
  }

  /** The sink passed on nothing of an unusable answer. Another attempt follows, or `onFailure`, or it returns false. */
  reject(failure: UpstreamFailure): boolean {
    if (this.state !== 'answering') return false;
    this.attempt?.tellUnusable(failure, this.time.isShort);
    this.attempt?.drop();
    this.onFailed(failure, 'may_have_begun');
    return true;
  }

  onWritten(): void {
    this.record.written(this.attempt!.managed.engine.name);
  }

  onHead(): void {
    this.state = 'answering';
    this.sink.onHead(this.time.endsAtMs);
  }

  onData(chunk: Buffer): void {
    this.isEmpty = false;
    if (this.gathered) this.gathered.add(chunk);
    else this.pass(chunk);
  }

  onAnswered(): void {
    this.gathered?.flush();
    if (this.state !== 'answering') return;
    if (this.isEmpty && !this.call.stream) return void this.reject({ kind: 'failed', reason: 'the answer is empty' });
    this.sink.onEnd(this.time.endsAtMs);
    // A plain answer is read first. Then the sink accepts or rejects it.
    if (this.call.stream) this.accept();
  }

  /** The answer is complete. Does nothing if the sink has rejected it. */
  accept(): void {
    if (this.state !== 'answering') return;
    this.state = 'ended';
    this.attempt?.tell('succeeded');
  }

  onFailed(failure: UpstreamFailure, progress: Progress): void {
    this.gathered?.endTurn();
    if (this.state === 'ended') return;
    const { managed, mayHaveBegun } = this.attempt!;
    this.record.ended(mayHaveBegun);
    this.chain.noteFailure(failure);
    const mayGoOn = this.attempts < MAX_ATTEMPTS;
    if (mayGoOn && progress === 'stale' && this.staleRepeats < MAX_STALE_REPEATS && !this.time.isOver) {
      this.staleRepeats += 1;
      // A request that waited may have taken the place.
      return this.soon(() => (managed.hasPlace ? this.ask(managed, performance.now()) : this.next()));
    }
    this.record.addFailed(failure, managed.engine.name);
    this.chain.addTried(managed);
    const wasBegun = this.runs > 0;
    if (progress !== 'not_begun') this.runs += 1;
    if (!mayGoOn || wasBegun || !mayHelpElsewhere(failure)) return this.end(failure);
    if (progress !== 'not_begun') this.chain.leaveOutEngine(managed);
    this.retry(failure, progress);
  }

  onReleased({ managed }: Attempt): void {
    this.upstream.fleet.released(managed.engine);
  }

  onUnreachable(managed: ManagedBackend): void {
    this.upstream.lookFor(managed);
  }

  onPlace(): boolean {
    const nowMs = performance.now();
    const chosen = this.chain.choose(nowMs);
    if (chosen === 'full') return false;
    this.place.leave();
    this.askOrFallBack(chosen, nowMs);
    return true;
  }

  onTimeout(): void {
    this.place.leave();
    this.end(this.failure ?? ALL_BUSY);
  }

  /** Asks a backend that was not tried yet, or waits for its place. */
  private next(): void {
    const nowMs = performance.now();
    const chosen = this.chain.choose(nowMs);
    if (chosen !== 'full') this.askOrFallBack(chosen, nowMs);
    else if (!this.place.take(nowMs)) this.end(this.failure ?? ALL_BUSY);
  }

  /** Backends that will probably fail are asked if there is nothing better, and a fallback is better. */
  private askOrFallBack(chosen: ManagedBackend | null, nowMs: number): void {
    if (!chosen?.isGood(nowMs) && this.fallBack(this.failure, nowMs)) return;
    this.ask(chosen, nowMs);
  }

  private ask(managed: ManagedBackend | null, nowMs: number): void {
    if (managed === null) return this.end(this.failure ?? ALL_BUSY);
    const { call, limits, upstream } = this;
    this.time.begin(managed.backend, nowMs);
    this.attempts += 1;
    this.isPaid = false;
    this.isEmpty = true;
    const request = attemptRequest(call, this.model, managed.backend, limits, this.time);
    const attempt = (this.attempt = new Attempt(this, managed, upstream.connections, request));
    if (call.stream)
      this.gathered = new GatheredChunks(
        (block) => this.attempt === attempt && this.pass(block),
        (error) => attempt.abort(error),
      );
    attempt.start();
  }

  private pass(data: Buffer): void {
    if (this.time.isOver) return void this.reject({ kind: 'timeout' });
    if (this.state === 'answering' && !this.sink.onData(data) && this.state === 'answering') this.pause();
  }

  private retry(failure: UpstreamFailure, progress: Progress): void {
    const nowMs = performance.now();
    if (this.time.isOver || this.chain.choose(nowMs) === null) return this.end(failure);
    if (this.hasPassedOn || !this.pays(nowMs)) return this.end(failure);
    this.restart();
    retries.inc({ model: this.model.id, result: 'made' });
    logger('gateway').warn(
      { ...this.call.request.logged, backend: this.backendUrl, progress, ...failure },
      'a backend failed; asking another',
    );
    this.failure = failure;
    this.soon(() => this.next());
  }

  /** A part of the answer has reached the client, so no other may follow. */
  private get hasPassedOn(): boolean {
    return this.state === 'answering' && !this.sink.mayRestart();
  }

  private restart(): void {
    if (this.state === 'answering') this.sink.restart();
    this.state = 'waiting';
  }

  /** Takes the next attempt from the retry budget of the model, which failed. */
  private pays(nowMs: number): boolean {
    this.isPaid ||= this.chain.pool.budget.take(nowMs);
    if (!this.isPaid) retries.inc({ model: this.model.id, result: 'over_budget' });
    return this.isPaid;
  }

  /** Continues outside of the parser's callback: undici runs one parser per process at a time. */
  private soon(go: () => void): void {
    queueMicrotask(() => this.state === 'waiting' && go());
  }

  /** Asks the next fallback instead of this model. False: there is none, or it may not be asked. */
  private fallBack(failure: UpstreamFailure | null, nowMs: number): boolean {
    const { chain } = this;
    if (this.runs >= MAX_RUNS || this.time.isOver || !chain.mayGoOn(failure, nowMs)) return false;
    const isFurtherRun = this.runs > 0;
    if (this.hasPassedOn || (isFurtherRun && !this.pays(nowMs))) return false;
    this.restart();
    this.place.leave();
    this.failure = failure;
    chain.goOn(failure);
    this.place = this.placeInQueue();
    this.attempts = this.staleRepeats = 0;
    if (!isFurtherRun) chain.pool.budget.first();
    this.sink.onFallback(chain.model);
    this.soon(() => this.next());
    return true;
  }

  private placeInQueue(): QueuePlace {
    return new QueuePlace(this, this.chain.pool, this.chain.model);
  }

  private end(last: UpstreamFailure): void {
    if (this.fallBack(last, performance.now())) return;
    const failure = this.hasPassedOn ? last : this.chain.inTheEnd(last);
    this.state = 'ended';
    this.sink.onFailure(failure);
  }
}
