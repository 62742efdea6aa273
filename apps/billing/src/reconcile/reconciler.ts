import type { Difference, ReconcileReport } from '@tollgate/contracts';
import { setTimeout as delay } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { auditLedger } from './audit';
import { compareTenant, type TenantView } from './compare';
import type { Stores } from './stores';

/** What differs is compared again so often before it is called a difference: messages on their way have arrived by then. */
const MAX_COMPARISONS = 8;
const COMPARE_AGAIN_MS = 250;
/** The report names no more; where so many differ, the first tell enough. */
const MAX_DIFFERENCES = 1_000;

/**
 * Proves, from the stores alone, that nothing was lost or doubled between a request and the ledger. Per tenant, a page at a time, in constant memory:
 *
 * 1. the ledger in itself, in one snapshot: charges = usage debits + carried rest, balance = Σ entries, postings sum to zero, every charge covered once or still gathering;
 * 2. against metering: events = charges;
 * 3. against the admission store: its balance is that of the same version of the books, its running sums are those of its holds, no hold outlives its charge.
 */
export class Reconciler {
  constructor(
    private readonly dataSource: DataSource,
    private readonly stores: Stores,
  ) {}

  /** @throws UnavailableError when metering does not answer: then nothing is said of the books */
  async reconcile(): Promise<ReconcileReport> {
    const report = {
      tenants: 0,
      events: 0,
      eventsNanos: 0n,
      chargesNanos: 0n,
      debitsNanos: 0n,
      carriedNanos: 0n,
      pendingHolds: 0,
      settledHolds: 0,
    };
    const differences: Difference[] = [];
    let after: string | undefined;
    for (;;) {
      const { ids, next } = await this.stores.nextTenants(after);
      const audit = await auditLedger(this.dataSource, ids);
      const { views, differences: found } = await this.compare(ids, after);
      report.tenants += ids.length;
      report.chargesNanos += audit.totals.chargesNanos;
      report.debitsNanos += audit.totals.debitsNanos;
      report.carriedNanos += audit.totals.carriedNanos;
      for (const { events, snapshot } of views) {
        report.events += Number(events.events);
        report.eventsNanos += events.costNanos;
        report.pendingHolds += snapshot?.pendingHolds ?? 0;
        report.settledHolds += snapshot?.settledHolds ?? 0;
      }
      differences.push(...[...audit.differences, ...found].slice(0, MAX_DIFFERENCES - differences.length));
      if (next === null) break;
      after = next;
    }
    return {
      ...report,
      ok: differences.length === 0,
      checkedAt: new Date().toISOString(),
      eventsNanos: String(report.eventsNanos),
      chargesNanos: String(report.chargesNanos),
      debitsNanos: String(report.debitsNanos),
      carriedNanos: String(report.carriedNanos),
      differences,
    };
  }

  /** Compares tenants across the stores; those that differ again and again, until what was on its way has had its time. */
  private async compare(
    ids: readonly string[],
    after: string | undefined,
  ): Promise<{ views: TenantView[]; differences: Difference[] }> {
    const settled: TenantView[] = [];
    const firstVersions = new Map<string, bigint>();
    const differencesOf = (view: TenantView) => compareTenant(view, firstVersions.get(view.tenantId));
    let open = ids;
    for (let comparison = 1; ; comparison++) {
      const views = open.length === 0 ? [] : await this.stores.views(open, after);
      if (comparison === 1) views.forEach((view) => firstVersions.set(view.tenantId, view.before.version));
      const differing = views.filter((view) => differencesOf(view).length > 0);
      const last = differing.length === 0 || comparison === MAX_COMPARISONS;
      settled.push(...(last ? views : views.filter((view) => !differing.includes(view))));
      if (last) return { views: settled, differences: differing.flatMap(differencesOf) };
      open = differing.map((view) => view.tenantId);
      await delay(COMPARE_AGAIN_MS);
    }
  }
}
