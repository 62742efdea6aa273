import type { Difference } from '@tollgate/contracts';
import type { Snapshot } from '@tollgate/admission';

/** The running state of a tenant's books, as cheap to read as one row. */
export interface Head {
  version: bigint;
  /** As the credit news of this version tells it. */
  balanceNanos: bigint;
  suspended: boolean;
}

/**
 * One tenant in the books and in the admission store. The heads enclose the snapshot in time: read before and after it.
 */
export interface TenantView {
  tenantId: string;
  before: Head;
  snapshot: Snapshot | undefined;
  /**
   * Without a snapshot: the store asks for the tenant when it has a request. It was emptied since the last one, or is
   * new.
   */
  asksForTenants: boolean;
  /**
   * Without a snapshot: the first of the tenant's holds there, which keep their place only beside what the store knows
   * of the tenant.
   */
  strayHolds: readonly string[];
  after: Head;
}

/** Admission stores count in 64 bits and treat a balance beyond this (4 × 10⁹ currency units) as this. */
const MAX_STORE_NANOS = 4n * 10n ** 18n;

export const NO_BOOKS: Head = { version: 0n, balanceNanos: 0n, suspended: false };
export const NEWS = 'the admission store has the news of the books';
export const READABLE = 'the state of the admission store can be read';
export const PENDING_SUM = 'pending sum = sum of pending holds';
export const SETTLED_SUM = 'settled sum = sum of settled holds';

/**
 * Compares the books with the admission store. News on its way is no difference: the heads were read around the
 * snapshot, so its version must lie between theirs. A difference found once may be movement that this cannot see: ask
 * again before believing it.
 * @param appliedSince version of the books that the admission store must know by now: that of the first comparison, as
 * the news of a busy tenant is always a little behind
 */
export function compareTenant(view: TenantView, appliedSince = view.before.version): Difference[] {
  const { tenantId, before, after, snapshot, asksForTenants, strayHolds } = view;
  const differences: Difference[] = [];
  const differ = (check: string, expected: unknown, actual: unknown, ids: readonly string[] = []) =>
    differences.push({ check, tenantId, expected: String(expected), actual: String(actual), ids: [...ids] });
  if (!snapshot) {
    // A store that was emptied has lost the holds with the rest: where they are left, it was not.
    const lost = strayHolds.length > 0 || (before.version > 0n && !asksForTenants);
    const actual = strayHolds.length > 0 ? 'nothing but holds' : 'nothing';
    if (lost) differ('the admission store knows the tenant', `version ${before.version}`, actual, strayHolds);
    return differences;
  }
  if (snapshot.unreadable !== undefined) {
    differ(READABLE, 'readable', snapshot.unreadable);
    return differences;
  }
  if (snapshot.version < appliedSince || snapshot.version > after.version) {
    differ(NEWS, `version ${after.version}`, `version ${snapshot.version}`);
  }
  for (const head of [before, after]) {
    if (snapshot.version !== head.version || capped(snapshot.balanceNanos) === capped(head.balanceNanos)) continue;
    differ('balance = balance of the admission store', head.balanceNanos, snapshot.balanceNanos);
    break;
  }
  for (const head of [before, after]) {
    if (snapshot.version !== head.version || snapshot.suspended === head.suspended) continue;
    differ('who is suspended is suspended in the admission store', head.suspended, snapshot.suspended);
    break;
  }
  if (snapshot.inFlight !== BigInt(snapshot.pendingHolds))
    differ('running requests = pending holds', snapshot.pendingHolds, snapshot.inFlight);
  if (snapshot.settledNanos !== snapshot.holdRowsSettledNanos) {
    differ(SETTLED_SUM, snapshot.holdRowsSettledNanos, snapshot.settledNanos);
  }
  if (snapshot.pendingNanos !== snapshot.holdRowsPendingNanos) {
    differ(PENDING_SUM, snapshot.holdRowsPendingNanos, snapshot.pendingNanos);
  }
  return differences;
}

/** As an admission store treats it. */
export function capped(nanos: bigint): bigint {
  return nanos > MAX_STORE_NANOS ? MAX_STORE_NANOS : nanos;
}
