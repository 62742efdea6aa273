import { Injectable, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { RefusalCounts, type Owner } from './refusal-counts';

/** A gateway that dies loses the counts of at most this time. */
const REPORT_EVERY_MS = 10_000;
/** For the shutdown: counts are not worth a longer wait. */
const LAST_DEADLINE_MS = 1_500;

/** What keys did, for the people who own them. Gathered, and reported to other services now and then. */
@Injectable()
export class KeyActivity implements OnModuleInit, BeforeApplicationShutdown {
  private readonly refusals: RefusalCounts;
  private timer: NodeJS.Timeout | undefined;
  private reporting: Promise<void> | null = null;

  constructor(services: ServiceClient) {
    this.refusals = new RefusalCounts(services);
  }

  onModuleInit(): void {
    this.timer = setInterval(() => void this.report(), REPORT_EVERY_MS).unref();
  }

  /** All requests have ended, and all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.reporting;
    await this.refusals.report(LAST_DEADLINE_MS);
  }

  /**
   * A request of this key has ended.
   * @param refusedAs the code of its answer; null if it was served, or its client left
   */
  ended(owner: Owner, refusedAs: string | null, nowMs: number): void {
    if (refusedAs !== null) this.refusals.count(owner, refusedAs, nowMs);
  }

  /** Reports now. Never rejects. */
  report(): Promise<void> {
    this.reporting ??= this.refusals.report().finally(() => (this.reporting = null));
    return this.reporting;
  }
}
