import { MAX_NAMED_DIFFERENCES, type Difference, type ReconcileReport } from '@tollgate/contracts';
import { HeadsDigest } from './chain';

/**
 * The findings of a run of reconcile so far: sums and differences. It keeps the first MAX_NAMED_DIFFERENCES and counts
 * the others.
 */
export class Findings {
  tenants = 0;
  events = 0;
  eventsNanos = 0n;
  chargesNanos = 0n;
  debitsNanos = 0n;
  carriedNanos = 0n;
  pendingHolds = 0;
  settledHolds = 0;
  differenceCount = 0;
  readonly journal = new HeadsDigest();
  private readonly differences: Difference[] = [];
  private truncated = false;

  /** True once no more differences need to be named. */
  get full(): boolean {
    return this.differences.length >= MAX_NAMED_DIFFERENCES;
  }

  /** @param truncated the check found more than it named */
  add(found: readonly Difference[], truncated = false): void {
    this.truncated ||= truncated;
    this.differenceCount += found.length;
    this.differences.push(...found.slice(0, MAX_NAMED_DIFFERENCES - this.differences.length));
  }

  report(): ReconcileReport {
    return {
      ok: this.differenceCount === 0,
      checkedAt: new Date().toISOString(),
      tenants: this.tenants,
      events: this.events,
      eventsNanos: String(this.eventsNanos),
      chargesNanos: String(this.chargesNanos),
      debitsNanos: String(this.debitsNanos),
      carriedNanos: String(this.carriedNanos),
      pendingHolds: this.pendingHolds,
      settledHolds: this.settledHolds,
      journalEntries: this.journal.entries,
      journalDigest: this.journal.hex,
      differenceCount: this.differenceCount,
      ...(this.truncated || this.differenceCount > this.differences.length ? { truncated: true } : {}),
      differences: this.differences,
    };
  }
}
