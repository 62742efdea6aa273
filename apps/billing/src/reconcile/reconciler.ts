import { setTimeout as delay } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import type { Difference } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { BillingDataSource } from '../database';
import { auditLedger } from './audit';
import { Charges } from './charges';
import { compareTenant, PENDING_SUM, SETTLED_SUM, type TenantView } from './compare';
import { EventWalk } from './event-walk';
import type { Findings } from './findings';
import { orphanHolds } from './holds';
import { auditInvoiceNumbers } from './invoice-audit';
import { askMetering } from './metering';
import { Stores } from './stores';

/**
 * What differs is compared again so often before it is called a difference: messages on their way have arrived by then.
 */
const MAX_COMPARISONS = 8;
const COMPARE_AGAIN_MS = 250;
/**
 * 30 s, for tenants with a debit on its way: twice the time in which one that nobody booked is given back. Then it is a
 * difference, too.
 */
const MAX_COMPARISONS_WITHDRAWING = 120;
/** Holds named beside a sum that is not theirs: one of them may be the stray one. */
const MAX_NAMED_HOLDS = 20;

/**
 * Proves, from the stores alone, that nothing was lost or doubled between a request and the ledger, in constant memory,
 * while traffic runs:
 *
 * 1. every event has its charge, and every charge its event, by id (event-walk.ts); metering's roll-ups are the sums of
 *    its events; none is quarantined that was not recorded since;
 * 2. the ledger in itself, in one snapshot a page of tenants: charges = usage debits + carried rest, balance = Σ
 *    entries, postings sum to zero, every entry has its place in the hash chain, every charge covered once or still
 *    gathering; invoices are the sums of their months, numbered without a gap;
 * 3. against the admission store: its balance is that of the same version of the books, its suspension is the books',
 *    its running sums are those of its holds, no hold is left over.
 */
@Injectable()
export class Reconciler {
  private readonly charges: Charges;
  private readonly stores: Stores;

  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
  ) {
    this.charges = new Charges(dataSource);
    this.stores = new Stores(dataSource, admission);
  }

  /**
   * Rejects with UnavailableError when metering or the admission store does not answer: then nothing is said of the
   * books.
   */
  async run(findings: Findings, stopped: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const end = AbortSignal.any([stopped, failed.signal]);
    const walk = new EventWalk(this.services, this.admission, this.charges, findings, end);
    const parts = [walk.run(), this.rollUps(findings, end), this.tenants(findings, end)];
    // Each keeps one connection of a database busy; when one fails, the others end.
    for (const part of parts) part.catch((error: unknown) => failed.abort(error));
    await Promise.allSettled(parts);
    end.throwIfAborted();
  }

  private async rollUps(findings: Findings, stopped: AbortSignal): Promise<void> {
    const aside = await askMetering(this.services, 'metering.rejected.audit', {});
    findings.add(aside.differences, aside.truncated);
    for (let after: string | null | undefined; after !== null;) {
      stopped.throwIfAborted();
      const request: { after?: string } = after === undefined ? {} : { after };
      const page = await askMetering(this.services, 'metering.rollups.audit', request);
      findings.add(page.differences, page.truncated);
      after = page.nextCursor;
    }
  }

  private async tenants(findings: Findings, stopped: AbortSignal): Promise<void> {
    const numbers = await auditInvoiceNumbers(this.dataSource);
    findings.add(numbers.differences, numbers.truncated);
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

  /** Compares tenants; those that differ again and again, until what was on its way has had its time. */
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
      const views = open.length === 0 ? [] : await this.stores.views(open, after);
      if (comparison === 1) views.forEach((view) => firstVersions.set(view.tenantId, view.before.version));
      const differing = views.filter((view) => differencesOf(view).length > 0);
      // The store is lower than the books from the withdrawal until the news of it.
      if (await this.stores.anyWithdrawing(differing.map((view) => view.tenantId)))
        enough = Math.min(comparison + MAX_COMPARISONS, MAX_COMPARISONS_WITHDRAWING);
      const last = differing.length === 0 || comparison >= enough;
      settled.push(...(last ? views : views.filter((view) => !differing.includes(view))));
      if (last) return { views: settled, differences: differing.flatMap(differencesOf) };
      open = differing.map((view) => view.tenantId);
      await delay(COMPARE_AGAIN_MS, undefined, { signal: stopped });
    }
  }

  /** Which hold is not counted in a running sum cannot be told from the sum; those that there are can be named. */
  private async withHolds(difference: Difference): Promise<Difference> {
    const state = { [PENDING_SUM]: 'pending', [SETTLED_SUM]: 'settled' }[difference.check];
    if (state === undefined) return difference;
    const holds = await this.admission.holds({ tenantId: difference.tenantId, limit: MAX_NAMED_HOLDS });
    return { ...difference, ids: holds.filter((hold) => hold.state === state).map((hold) => hold.id) };
  }
}
