import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import type { Difference } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { delayUntilAborted } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import type { Clocks } from '../ledger/clocks';
import { BILLING_OPTIONS } from '../options';
import { askAgain } from './ask';
import { auditLedger } from './audit';
import { Charges } from './charges';
import { auditCommonRows } from './common-audit';
import { compareTenant, PENDING_SUM, SETTLED_SUM, type TenantView } from './compare';
import { EventWalk } from './event-walk';
import type { Findings } from './findings';
import { orphanHolds } from './holds';
import { auditInvoiceNumbers } from './invoice-audit';
import { auditMissingBooks } from './missing-books';
import { RetiredMonths } from './retired-months';
import { suspendedByAuth } from './statuses';
import { Stores } from './stores';

/** After this many comparisons, a remaining difference counts as one. Messages on their way have arrived by then. */
const MAX_COMPARISONS = 8;
const COMPARE_AGAIN_MS = 250;
/**
 * 30 s, for tenants with a debit on its way: twice the time after which an unbooked debit is given back. Later it
 * counts as a difference, too.
 */
const MAX_COMPARISONS_WITHDRAWING = 120;
/** Holds named beside a wrong sum. One of them may be the cause. */
const MAX_NAMED_HOLDS = 20;

/**
 * Proves from the stores alone that nothing was lost or doubled between a request and the ledger, in constant memory,
 * while traffic runs:
 *
 * 1. Every event has its charge, and every charge its event, by id (event-walk.ts). Of months that metering no longer
 *    keeps, the charges have the totals of the events (retired-months.ts). Metering's roll-ups are the sums of its
 *    events. No quarantined event is unrecorded.
 * 2. The ledger in itself, in one snapshot per page of tenants: charges = usage debits + carried remainder; balance = Σ
 *    entries; postings sum to zero; every entry has its place in the hash chain; every charge is covered once or still
 *    gathering; invoices are the sums of their months, numbered without a gap; the spending that budgets watch is the
 *    sum of the charges. No tenant of the ledger lacks books. The rows that all tenants share are right
 *    (common-audit.ts).
 * 3. Against the admission store: its balance is that of the same version of the books, its suspension is that of the
 *    books, its running sums are those of its holds, and no hold is left over.
 * 4. Against auth: the books suspend the tenants that auth suspends.
 */
@Injectable()
export class Reconciler {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    private readonly charges: Charges,
    private readonly stores: Stores,
    private readonly retired: RetiredMonths,
    @Inject(BILLING_OPTIONS) private readonly options: Clocks & { currency: () => string },
  ) {}

  /**
   * Rejects with UnavailableError when auth, metering or the admission store does not answer. Then the run makes no
   * statement about the books.
   */
  async run(findings: Findings, stopped: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const end = AbortSignal.any([stopped, failed.signal]);
    const walk = new EventWalk(this.services, this.admission, this.charges, findings, end);
    const events = async () => walk.run(await this.retired.prove(findings, end));
    const parts = [events(), this.rollUps(findings, end), this.tenants(findings, end)];
    // Each part keeps one connection of a database busy. When one fails, the others end.
    for (const part of parts) part.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(parts);
    end.throwIfAborted();
  }

  private async rollUps(findings: Findings, stopped: AbortSignal): Promise<void> {
    const quarantined = await askAgain(this.services, 'metering.rejected.audit', {}, stopped);
    findings.add(quarantined.differences, quarantined.truncated);
    for (let after: string | null | undefined; after !== null;) {
      stopped.throwIfAborted();
      const request: { after?: string } = after === undefined ? {} : { after };
      const page = await askAgain(this.services, 'metering.rollups.audit', request, stopped);
      findings.add(page.differences, page.truncated);
      after = page.nextCursor;
    }
  }

  private async tenants(findings: Findings, stopped: AbortSignal): Promise<void> {
    for (const audit of [auditMissingBooks, auditInvoiceNumbers, auditCommonRows]) {
      const { differences, truncated } = await audit(this.dataSource, this.options);
      findings.add(differences, truncated);
    }
    for (let after: string | undefined; ;) {
      stopped.throwIfAborted();
      const { ids, next } = await this.stores.nextTenants(after);
      const { totals, differences, truncated, heads } = await auditLedger(this.dataSource, ids, stopped);
      findings.add(differences, truncated);
      findings.journal.add(heads);
      findings.chargesNanos += totals.chargesNanos;
      findings.debitsNanos += totals.debitsNanos;
      findings.carriedNanos += totals.carriedNanos;
      await this.againstAdmission(ids, { after, findings, stopped });
      findings.tenants += ids.length;
      if (next === null) return;
      after = next;
    }
  }

  private async againstAdmission(
    ids: readonly string[],
    { after, findings, stopped }: { after: string | undefined; findings: Findings; stopped: AbortSignal },
  ): Promise<void> {
    const { views, differences } = await this.compare(ids, after, stopped);
    findings.add(await Promise.all(differences.map((difference) => this.withHolds(difference))));
    for (const { tenantId, snapshot, strayHolds } of views) {
      const { pendingHolds, settledHolds } = snapshot ?? { pendingHolds: 0, settledHolds: 0 };
      if (pendingHolds + settledHolds + strayHolds.length === 0) continue;
      findings.pendingHolds += pendingHolds;
      findings.settledHolds += settledHolds;
      findings.add(await orphanHolds(this.admission, this.charges, tenantId));
    }
  }

  /** Compares tenants. Returns those that still differ after the time that updates on their way need. */
  private async compare(
    ids: readonly string[],
    after: string | undefined,
    stopped: AbortSignal,
  ): Promise<{ views: TenantView[]; differences: Difference[] }> {
    const settled: TenantView[] = [];
    const firstVersions = new Map<string, bigint>();
    const differencesOf = (view: TenantView) => compareTenant(view, firstVersions.get(view.tenantId));
    let open = ids;
    let enough = MAX_COMPARISONS;
    for (let comparison = 1; ; comparison++) {
      const views = open.length === 0 ? [] : await this.views(open, after, stopped);
      if (comparison === 1) views.forEach((view) => firstVersions.set(view.tenantId, view.before.version));
      const differing = views.filter((view) => differencesOf(view).length > 0);
      // From the withdrawal until its balance update, the store is lower than the books.
      if (await this.stores.anyWithdrawing(differing.map((view) => view.tenantId)))
        enough = Math.min(comparison + MAX_COMPARISONS, MAX_COMPARISONS_WITHDRAWING);
      const last = differing.length === 0 || comparison >= enough;
      settled.push(...(last ? views : views.filter((view) => !differing.includes(view))));
      if (last) return { views: settled, differences: differing.flatMap(differencesOf) };
      open = differing.map((view) => view.tenantId);
      await delayUntilAborted(COMPARE_AGAIN_MS, stopped);
      stopped.throwIfAborted();
    }
  }

  private async views(ids: readonly string[], after: string | undefined, stopped: AbortSignal): Promise<TenantView[]> {
    const views = await this.stores.views(ids, after);
    const suspended = await suspendedByAuth(this.services, ids, stopped);
    return views.map((view) => ({ ...view, suspendedByAuth: suspended.get(view.tenantId) }));
  }

  /** The sum does not tell which hold it misses. The existing holds can be named. */
  private async withHolds(difference: Difference): Promise<Difference> {
    const state = { [PENDING_SUM]: 'pending', [SETTLED_SUM]: 'settled' }[difference.check];
    if (state === undefined) return difference;
    const holds = await this.admission.holds({ tenantId: difference.tenantId, limit: MAX_NAMED_HOLDS });
    return { ...difference, ids: holds.filter((hold) => hold.state === state).map((hold) => hold.id) };
  }
}
