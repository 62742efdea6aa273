import { failPoint, logger } from '@tollgate/runtime';
import type { AdmissionStore, Progress } from './admission-store';
import type { HoldDeadline } from './hold-deadline';

/** A stream that dies with its gateway is charged what was recorded: at most this much of it is lost. */
const DEFAULT_INTERVAL_MS = 1_000;
/** One call keeps its tenants locked for about 10 µs a hold: larger ones would be felt by admissions. */
const MAX_HOLDS_PER_CALL = 250;

/** A request that runs under a hold. */
export interface RunningRequest {
  id: string;
  tenantId: string;
  /** As `admit` gave it. */
  storeEpoch?: string | undefined;
  /** As `admit` gave it: moved by each sign of life that the store acknowledges. */
  deadline?: HoldDeadline | undefined;
  /**
   * Makes ready what `delivered` tells: awaited before it, for all requests at once. Must end well within the interval,
   * whatever there is to do.
   */
  prepare?: () => Promise<void>;
  /** What was delivered until now: recorded once a second. */
  delivered: () => Progress['delivered'];
  /**
   * The hold is gone (expired, settled or void by another), or its deadline has passed: nothing pays for the request
   * any more, so end it. Called once, after which it is no longer tracked.
   */
  onLost: () => void;
}

/**
 * Tells the store once a second which requests of this process still run, all in one call (in parts when there are very
 * many, one after the other). The second is from start to start; when the calls take longer, the next begin when they
 * have ended. Costs a request two changes of a Map, and nothing when it ends within the second.
 */
export class HoldHeartbeat {
  private readonly running = new Map<string, RunningRequest>();
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private failing = false;

  constructor(
    private readonly store: AdmissionStore,
    private readonly intervalMs = DEFAULT_INTERVAL_MS,
  ) {}

  track(request: RunningRequest): void {
    this.running.set(request.id, request);
    this.timer ??= this.schedule(this.intervalMs);
  }

  untrack(id: string): void {
    this.running.delete(id);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private schedule(inMs: number): NodeJS.Timeout | undefined {
    return this.stopped ? undefined : setTimeout(() => void this.tellAll(), inMs).unref();
  }

  private async tellAll(): Promise<void> {
    const startedMs = performance.now();
    this.endOverdue();
    const requests = [...this.running.values()];
    await Promise.all(requests.map((request) => this.prepare(request)));
    for (let from = 0; from < requests.length && !this.stopped; from += MAX_HOLDS_PER_CALL) {
      await this.tell(requests.slice(from, from + MAX_HOLDS_PER_CALL));
    }
    const tookMs = performance.now() - startedMs;
    this.timer = this.running.size > 0 ? this.schedule(Math.max(0, this.intervalMs - tookMs)) : undefined;
  }

  /**
   * First of all, as after a standstill it is too late for another sign of life; and while the store is away, when
   * nobody else would say so to a request whose backend says nothing either.
   */
  private endOverdue(): void {
    for (const request of this.running.values()) if (request.deadline?.passed) this.lose(request);
  }

  private lose(request: RunningRequest): void {
    this.running.delete(request.id);
    request.onLost();
  }

  /** Where it fails, `delivered` tells what it can. */
  private async prepare({ id, prepare }: RunningRequest): Promise<void> {
    try {
      await prepare?.();
    } catch (error) {
      logger('admission').error({ err: error, id }, 'what was delivered could not be counted');
    }
  }

  /** What cannot be told of one request must not keep the others from being told. */
  private record(id: string, delivered: RunningRequest['delivered']): Progress['delivered'] {
    try {
      return delivered();
    } catch (error) {
      logger('admission').error({ err: error, id }, 'what was delivered cannot be told: only the deadline is renewed');
      return null;
    }
  }

  /** A call that fails is made up for by the next one: the deadline leaves room for several. */
  private async tell(requests: readonly RunningRequest[]): Promise<void> {
    // Those that ended since the list was made are left alone.
    const alive = requests.filter((request) => this.running.get(request.id) === request);
    let pending: (boolean | Error)[];
    const sentMs = performance.now();
    try {
      pending = await this.store.progress(
        alive.map(({ id, tenantId, delivered, storeEpoch }) => ({
          id,
          tenantId,
          delivered: this.record(id, delivered),
          storeEpoch,
        })),
      );
      failPoint('progress-recorded');
    } catch (error) {
      return this.failed(error, alive.length);
    }
    const errors = pending.filter((answer) => answer instanceof Error);
    if (errors.length > 0) this.failed(errors[0], errors.length);
    else this.failing = false;
    for (const [index, request] of alive.entries()) {
      if (pending[index] === true) request.deadline?.renew(sentMs);
      if (pending[index] !== false || this.running.get(request.id) !== request) continue;
      this.lose(request);
    }
  }

  /** Said once, until it works again. */
  private failed(error: unknown, requests: number): void {
    if (!this.failing) logger('admission').warn({ err: error, requests }, 'signs of life were not recorded');
    this.failing = true;
  }
}
