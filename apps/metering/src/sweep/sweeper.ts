import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { AdmissionStore } from '@tollgate/admission';
import type { UsageEvent } from '@tollgate/contracts';
import { MessagesRefusedError, type Messages } from '@tollgate/messaging';
import { backoffMs, Counter, failPoint, logCapped, logger, metrics, WakeableDelay } from '@tollgate/runtime';

/** Holds returned by one call. There are two kinds, so up to twice as many events in one publication. */
export const SWEEP_LIMIT = 500;
/** Calls in one round. The next round continues. */
const MAX_SWEEPS_A_ROUND = 20;
const MAX_BACKOFF_MS = 5_000;
export const DEFAULT_SWEEP_INTERVAL_MS = 1_000;
export const DEFAULT_CONFIRM_AFTER_MS = 5_000;
/**
 * While many confirmations are missing (billing is down, or far behind), events are redelivered more and more rarely,
 * down to this interval. Repeats must not feed the backlog that they wait for.
 */
const MAX_CONFIRM_AFTER_MS = 300_000;

const swept = new Counter({
  name: 'tollgate_metering_swept_events_total',
  help: 'Usage events published again because their hold had expired or was not confirmed in time',
  registers: [metrics],
});

export interface SweeperOptions {
  sweepIntervalMs: number;
  confirmAfterMs: number;
}

/**
 * Recovers lost usage. Every interval it asks the admission store for the records of holds that expired or that the
 * ledger has not confirmed in time, and publishes them as usage events. Repeats are harmless. If the publication fails,
 * the store returns them again. Any number of sweepers may run.
 *
 * The wait for confirmation doubles with each round that found a backlog (SWEEP_LIMIT events or more), up to
 * MAX_CONFIRM_AFTER_MS. It falls back once no backlog was found for two such waits. A crash or a cut leaves less than a
 * backlog, so its usage is never delayed.
 */
export class Sweeper implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private readonly pause = new WakeableDelay();
  private done: Promise<void> = Promise.resolve();
  private confirmAfterMs: number;
  private lastBacklogMs = 0;

  constructor(
    private readonly store: AdmissionStore,
    private readonly messages: Messages,
    private readonly options: SweeperOptions,
  ) {
    this.confirmAfterMs = options.confirmAfterMs;
  }

  onApplicationBootstrap(): void {
    this.done = this.run();
  }

  /** Waits for the current call. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.pause.wake();
    await this.done;
  }

  /** One round. Returns the number of published events. Rejects when the store or the publication does. */
  async sweep(nowMs = Date.now()): Promise<number> {
    let total = 0;
    for (let call = 0; call < MAX_SWEEPS_A_ROUND && !this.stopping; call++) {
      const events: UsageEvent[] = await this.store.sweep({ limit: SWEEP_LIMIT, confirmAfterMs: this.confirmAfterMs });
      if (events.length > 0) {
        failPoint('swept');
        const published = await this.publish(events);
        failPoint('sweep-published');
        swept.inc(published);
        total += published;
      }
      if (events.length < SWEEP_LIMIT) break;
    }
    this.pace(total, nowMs);
    return total;
  }

  /**
   * Returns the number of published events. All go in one call, or one by one if that call is refused: an event that
   * can never be published must not keep the others back. Its hold stays, for a person to look at.
   */
  private async publish(events: readonly UsageEvent[]): Promise<number> {
    try {
      await this.messages.publish('usage-events', events);
      return events.length;
    } catch (error) {
      if (!(error instanceof MessagesRefusedError)) throw error;
      if (events.length === 1) {
        const about = { err: error, eventId: events[0]!.id };
        logCapped(logger('metering'), 'error', about, 'the usage of a hold can never be published');
        return 0;
      }
    }
    let published = 0;
    for (const event of events) published += await this.publish([event]);
    return published;
  }

  private pace(found: number, nowMs: number): void {
    if (found >= SWEEP_LIMIT) {
      this.confirmAfterMs = Math.min(
        this.confirmAfterMs * 2,
        Math.max(MAX_CONFIRM_AFTER_MS, this.options.confirmAfterMs),
      );
      this.lastBacklogMs = nowMs;
    } else if (nowMs - this.lastBacklogMs > 2 * this.confirmAfterMs) {
      this.confirmAfterMs = this.options.confirmAfterMs;
    }
  }

  private async run(): Promise<void> {
    for (let failures = 0; !this.stopping;) {
      try {
        const found = await this.sweep();
        if (found > 0)
          logger('metering').info(
            { events: found, confirmAfterMs: this.confirmAfterMs },
            'unconfirmed usage published again',
          );
        failures = 0;
      } catch (error) {
        failures++;
        logger('metering').warn({ err: error, failures }, 'the sweep failed; retrying');
      }
      const { sweepIntervalMs } = this.options;
      const waitMs = failures > 0 ? backoffMs(failures, sweepIntervalMs, MAX_BACKOFF_MS) : 0;
      if (!this.stopping) await this.pause.wait(Math.max(sweepIntervalMs, waitMs));
    }
  }
}
