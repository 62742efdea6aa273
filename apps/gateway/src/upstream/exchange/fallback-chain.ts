import { logCapped, logger } from '@tollgate/runtime';
import type { CatalogModel } from '../../catalog/catalog';
import { choose, soonestSeconds, urlOf } from '../fleet/backend-choice';
import { fallbacks } from '../fleet/backend-metrics';
import type { UpstreamCall } from './call';
import { ALL_BUSY, mayHelpElsewhere, type UpstreamFailure } from './failure';
import type { Fleet, ManagedBackend, Pool } from '../fleet/fleet';
import { sooner } from './retry-after';
import type { TotalTime } from './total-time';

const NOTHING_TRIED: readonly ManagedBackend[] = [];

/** The attempts at one model: its backends, and those that are not asked again. */
class ModelAttempts {
  readonly pool: Pool;
  /** Backends that are not asked again. Null: there are none. */
  tried: ManagedBackend[] | null = null;

  constructor(
    readonly model: CatalogModel,
    fleet: Fleet,
  ) {
    this.pool = fleet.poolOf(model);
  }
}

/**
 * The models that a request asks in turn: the one that it names, then its fallbacks. The chain notes why the first was
 * left and how long all backends are busy. From that it makes the client's error if no model serves.
 */
export class FallbackChain {
  private now: ModelAttempts;
  /** The models that could not serve. Null: there are none. */
  private left: ModelAttempts[] | null = null;
  /** Fallbacks that were passed over, as no backend of theirs had any time left. */
  private passedOver = 0;
  /** Why the first model was left. Null: no backend of it was asked, or it was not left. */
  private ownFailure: UpstreamFailure | null = null;
  /** The shortest wait that a busy backend named, in seconds. */
  private retryAfter: number | null = null;

  constructor(
    private readonly fleet: Fleet,
    private readonly call: Pick<UpstreamCall, 'model' | 'fallbacks' | 'request' | 'affinity'>,
    private readonly time: TotalTime,
  ) {
    this.now = new ModelAttempts(call.model, fleet);
  }

  /** The model that is asked now. */
  get model(): CatalogModel {
    return this.now.model;
  }

  get pool(): Pool {
    return this.now.pool;
  }

  /** Backends of the model that are not asked again. */
  get tried(): readonly ManagedBackend[] {
    return this.now.tried ?? NOTHING_TRIED;
  }

  addTried(managed: ManagedBackend): void {
    (this.now.tried ??= []).push(managed);
  }

  /** Backends with the same URL as this one are not asked: they are one engine. */
  leaveOutEngine({ backend }: ManagedBackend): void {
    const url = urlOf(backend);
    for (const other of this.pool.backends) if (urlOf(other.backend) === url) this.addTried(other);
  }

  /** The backend of the model to ask next: see `choose`. Backends whose total time is over are left out from now on. */
  choose(nowMs: number): ManagedBackend | 'full' | null {
    for (const managed of this.pool.backends)
      if (this.time.isOverFor(managed.backend, nowMs) && !this.tried.includes(managed)) this.addTried(managed);
    return choose(this.pool.backends, this.tried, nowMs, this.call.affinity);
  }

  noteFailure(failure: UpstreamFailure): void {
    if (failure.kind === 'busy') this.retryAfter = sooner(this.retryAfter, failure.retryAfterSeconds);
  }

  /** Whether another model follows that may serve after this failure. Null: no backend of this one was asked. */
  mayGoOn(failure: UpstreamFailure | null, nowMs: number): boolean {
    while (this.next?.backends.every((one) => this.time.isOverFor(one, nowMs))) this.passedOver += 1;
    if (this.next === undefined) return false;
    return failure === null || mayHelpElsewhere(failure) || this.isFallbacksRefusal(failure);
  }

  /** Only after `mayGoOn`. */
  goOn(failure: UpstreamFailure | null): void {
    const { now, call } = this;
    const next = this.next!;
    fallbacks.inc({ model: now.model.id, fallback: next.id });
    const about = { ...call.request.logged, fallback: next.id, ...failure };
    logCapped(logger('gateway'), 'warn', about, 'no backend of a model can serve; asking its fallback');
    if (this.left === null) this.ownFailure = failure;
    (this.left ??= []).push(now);
    this.now = new ModelAttempts(next, this.fleet);
  }

  /**
   * What the client gets if no model serves: the failure of the model that it asked for. If that was only busy,
   * `Retry-After` is the soonest of all backends of all models asked.
   */
  inTheEnd(last: UpstreamFailure): UpstreamFailure {
    const failure = this.left === null || last.kind === 'stopped' ? last : (this.ownFailure ?? ALL_BUSY);
    if (failure.kind !== 'busy') return failure;
    const nowMs = performance.now();
    let soonest = this.retryAfter;
    for (const { pool, tried } of [...(this.left ?? []), this.now])
      soonest = sooner(soonest, soonestSeconds(pool.backends, tried ?? NOTHING_TRIED, nowMs));
    return { kind: 'busy', retryAfterSeconds: soonest };
  }

  private get next(): CatalogModel | undefined {
    return this.call.fallbacks[(this.left?.length ?? 0) + this.passedOver];
  }

  /** A refusal by a fallback says nothing about the request to another model. */
  private isFallbacksRefusal(failure: UpstreamFailure): boolean {
    return this.left !== null && failure.kind !== 'stopped' && !mayHelpElsewhere(failure);
  }
}
