import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import type { Difference } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { delayUntilAborted } from '@tollgate/runtime';
import { Charges } from './charges';
import { compareTenant, PENDING_SUM, SETTLED_SUM, type TenantView } from './compare';
import type { Findings } from './findings';
import { orphanHolds } from './holds';
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
 * The part of reconcile that asks the admission store and auth about tenants. In the store, a tenant's balance is that
 * of the same version of the books, its suspension is as in the books, its running sums are the sums of its holds, and
 * no hold is left over. The books suspend the tenants that auth suspends.
 */
@Injectable()
export class StateAudit {
  constructor(
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    private readonly charges: Charges,
    private readonly stores: Stores,
  ) {}

  async compare(
    ids: readonly string[],
    { after, findings, stopped }: { after: string | undefined; findings: Findings; stopped: AbortSignal },
  ): Promise<void> {
    const { views, differences } = await this.differences(ids, after, stopped);
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
  private async differences(
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
