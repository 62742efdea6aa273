import { failPoint, logger } from '@tollgate/runtime';
import type { AdmissionStore, Progress } from '../admission-store';
import type { HoldDeadline } from './hold-deadline';

/** A stream whose gateway dies is charged what was recorded. At most this much of it is lost. */
const DEFAULT_INTERVAL_MS = 1_000;
/** A call locks its tenants for about 10 µs a hold. Larger calls would delay admissions. */
const MAX_HOLDS_PER_CALL = 250;

/** A request that runs under a hold. */
export interface RunningRequest {
  id: string;
  tenantId: string;
  /** The value that `admit` returned. */
  storeEpoch?: string | undefined;
  /** From `admit`. Each acknowledged heartbeat moves it. */
  deadline?: HoldDeadline | undefined;
  /**
   * Prepares what `delivered` returns. Awaited before it, for all requests at once. Must always end well within the
   * interval.
   */
  prepare?: () => Promise<void>;
  /** What was delivered until now. Recorded once a second. */
  delivered: () => Progress['delivered'];
  /**
   * Called once when the hold is gone (expired, settled or voided elsewhere) or its deadline has passed. The request is
   * no longer covered and must end. It is not tracked any more.
   */
  onLost: () => void;
}

/**
 * Reports to the store once a second which requests of this process still run. All go in one call, or in several
 * consecutive calls if there are very many. The second counts from start to start. If the calls take longer, the next
 * ones begin when they have ended. A request costs two changes of an object if it ends within the second.
 */
export class HoldHeartbeat {
  private readonly running = new RunningRequests();
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private failing = false;

  constructor(
    private readonly store: AdmissionStore,
    private readonly intervalMs = DEFAULT_INTERVAL_MS,
  ) {}

  track(request: RunningRequest): void {
    this.running.add(request);
    this.timer ??= this.schedule(this.intervalMs);
  }

  untrack(id: string): void {
    this.running.remove(id);
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
    const requests = this.running.all();
    await Promise.all(requests.map((request) => this.prepare(request)));
    for (let from = 0; from < requests.length && !this.stopped; from += MAX_HOLDS_PER_CALL) {
      await this.tell(requests.slice(from, from + MAX_HOLDS_PER_CALL));
    }
    const tookMs = performance.now() - startedMs;
    this.timer = !this.running.isEmpty ? this.schedule(Math.max(0, this.intervalMs - tookMs)) : undefined;
  }

  /**
   * Comes first: after a standstill it is too late for another heartbeat. While the store does not answer, it also ends
   * requests whose backend is silent, which nothing else would end.
   */
  private endOverdue(): void {
    for (const request of this.running.all()) if (request.deadline?.passed) this.lose(request);
  }

  /** An error in one request must not keep the others from being told, or end the heartbeats. */
  private lose({ id, onLost }: RunningRequest): void {
    this.running.remove(id);
    try {
      onLost();
    } catch (error) {
      logger('admission').error({ err: error, id }, 'ending a request that lost its hold failed');
    }
  }

  /** If it fails, `delivered` reports what it has. */
  private async prepare({ id, prepare }: RunningRequest): Promise<void> {
    try {
      await prepare?.();
    } catch (error) {
      logger('admission').error({ err: error, id }, 'counting the delivered tokens failed');
    }
  }

  /** An error in one request must not affect the reports of the others. */
  private record(id: string, delivered: RunningRequest['delivered']): Progress['delivered'] {
    try {
      return delivered();
    } catch (error) {
      logger('admission').error({ err: error, id }, 'reading the delivered tokens failed: renewing the deadline only');
      return null;
    }
  }

  /** The next call makes up for a failed one: the deadline leaves room for several. */
  private async tell(requests: readonly RunningRequest[]): Promise<void> {
    // Requests that ended since the list was made are skipped.
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

  /** Logged once, until it works again. */
  private failed(error: unknown, requests: number): void {
    if (!this.failing) logger('admission').warn({ err: error, requests }, 'recording heartbeats failed');
    this.failing = true;
  }
}

/** By id. An object, not a Map: see PlaceList of libs/runtime. */
class RunningRequests {
  private readonly byId = Object.create(null) as Record<string, RunningRequest>;

  get isEmpty(): boolean {
    for (const _ in this.byId) return false;
    return true;
  }

  add(request: RunningRequest): void {
    this.byId[request.id] = request;
  }

  get(id: string): RunningRequest | undefined {
    return this.byId[id];
  }

  remove(id: string): void {
    delete this.byId[id];
  }

  all(): RunningRequest[] {
    return Object.values(this.byId);
  }
}
