import { Injectable, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { RefusedRequest } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { LastUses } from '../http/account/last-uses';
import { RefusalCounts, type Owner } from './refusal-counts';
import { RefusalSamples } from './refusal-samples';

/** A gateway that dies loses the counts of at most this time. */
const REPORT_EVERY_MS = 10_000;
/** Each use that is sent changes a row. A key that works all day needs no more than this. */
const SEND_USES_EVERY_MS = 60_000;
/** For the shutdown: counts and times are not worth a longer wait. */
const LAST_DEADLINE_MS = 1_500;

/** What keys did, for the people who own them. Gathered, and reported to other services now and then. */
@Injectable()
export class KeyActivity implements OnModuleInit, BeforeApplicationShutdown {
  private readonly samples = new RefusalSamples();
  private readonly refusals: RefusalCounts;
  private readonly uses: LastUses;
  private timers: NodeJS.Timeout[] = [];
  private reporting: Promise<void> | null = null;

  constructor(services: ServiceClient) {
    this.refusals = new RefusalCounts(services, this.samples);
    this.uses = new LastUses(services, 'auth.keys.used');
  }

  onModuleInit(): void {
    this.timers = [
      setInterval(() => void this.reportRefusals(), REPORT_EVERY_MS).unref(),
      setInterval(() => void this.uses.flush(), SEND_USES_EVERY_MS).unref(),
    ];
  }

  /** All requests have ended, and all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    await this.reporting;
    await Promise.all([this.refusals.report(LAST_DEADLINE_MS), this.uses.flush(LAST_DEADLINE_MS)]);
  }

  /**
   * A request of this key has ended.
   * @param refusedAs the code of its answer; null if it was served, or its client left
   */
  ended(owner: Owner, refusedAs: string | null, nowMs: number): void {
    this.uses.record(owner.keyId, nowMs);
    if (refusedAs !== null) this.refusals.count(owner, refusedAs, nowMs);
  }

  /** A request of this key has no usage. `make` is called only if it is kept for an explanation. */
  refused({ keyId }: Owner, code: string, make: () => RefusedRequest): void {
    this.samples.note(keyId, code, make);
  }

  /** Reports now. Never rejects. */
  async report(): Promise<void> {
    await Promise.all([this.reportRefusals(), this.uses.flush()]);
  }

  private reportRefusals(): Promise<void> {
    this.reporting ??= this.refusals.report().finally(() => (this.reporting = null));
    return this.reporting;
  }
}
