import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import type { RefusedRequest } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { LastUses } from './last-uses';
import { PacedReports } from './paced-reports';
import { RefusalCounts, type Owner } from './refusal-counts';
import { RefusalSamples } from './refusal-samples';

/** Each use that is sent changes a row. A key that works all day needs no more than this. */
const KEY_RESTS_MS = 60_000;
/** For the shutdown: counts and times are not worth a longer wait. */
const LAST_DEADLINE_MS = 1_500;

/** Gathers the activity of keys for their owners, and reports it to other services a moment later. */
@Injectable()
export class KeyActivity implements BeforeApplicationShutdown {
  private readonly samples = new RefusalSamples();
  private readonly refusals: RefusalCounts;
  private readonly reports: PacedReports;
  private readonly uses: LastUses;

  constructor(services: ServiceClient) {
    const refusals = new RefusalCounts(services, this.samples);
    this.refusals = refusals;
    this.reports = new PacedReports(() => refusals.report());
    this.uses = new LastUses(services, 'auth.keys.used', KEY_RESTS_MS);
  }

  /** All requests have ended, and all services still answer. */
  async beforeApplicationShutdown(): Promise<void> {
    this.reports.close();
    this.uses.close();
    await Promise.all([
      this.reports.now(() => this.refusals.report(LAST_DEADLINE_MS)),
      this.uses.flush(LAST_DEADLINE_MS),
    ]);
  }

  /**
   * A request of this key has ended.
   * @param refusedAs the code of its answer; null if it was served, or its client left
   */
  ended(owner: Owner, refusedAs: string | null, nowMs: number): void {
    this.uses.record(owner.keyId, nowMs);
    if (refusedAs === null) return;
    this.refusals.count(owner, refusedAs, nowMs);
    this.reports.ask();
  }

  /** A request of this key has no usage. `make` is called only if it is kept for an explanation. */
  refused({ keyId }: Owner, code: string, make: () => RefusedRequest): void {
    this.samples.note(keyId, code, make);
    this.reports.ask();
  }

  /** Reports all now. Never rejects. */
  async report(): Promise<void> {
    await Promise.all([this.reports.now(), this.uses.flush()]);
  }
}
