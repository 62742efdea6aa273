import type { Difference } from '@tollgate/contracts';
import type { Snapshot } from '@tollgate/admission';

/** The running state of a tenant's books: one row. */
export interface Head {
  version: bigint;
  /** The balance in the balance update of this version. */
  balanceNanos: bigint;
  suspended: boolean;
}

/**
 * One tenant in the books and in the admission store. The heads enclose the snapshot in time: they are read before and
 * after it.
 */
export interface TenantView {
  tenantId: string;
  before: Head;
  snapshot: Snapshot | undefined;
  /**
   * Applies without a snapshot. The store will ask for the tenant at its next request, because the store was emptied or
   * is new.
   */
  asksForTenants: boolean;
  /**
   * Applies without a snapshot. The first of the tenant's holds in the store. Holds exist only together with the
   * tenant's state.
   */
  strayHolds: readonly string[];
  after: Head;
  /** Whether auth suspends the tenant. Undefined: auth was not asked, or does not know the tenant. */
  suspendedByAuth?: boolean | undefined;
}

/** Admission stores count in 64 bits and cap a balance, and a debt, at this value (4 × 10⁹ currency units). */
const MAX_STORE_NANOS = 4n * 10n ** 18n;

export const NO_BOOKS: Head = { version: 0n, balanceNanos: 0n, suspended: false };
export const BALANCE_UPDATE = 'the admission store has the balance update of the books';
const STATUS = 'the books suspend those tenants that auth suspends';
const READABLE = 'the state of the admission store can be read';
export const PENDING_SUM = 'pending sum = sum of pending holds';
export const SETTLED_SUM = 'settled sum = sum of settled holds';

/**
 * Compares the books with the admission store, and with auth's status. An update on its way is no difference: the heads
 * were read around the snapshot, so its version must lie between theirs. One look may catch a movement, so confirm a
 * difference by another.
 * @param appliedSince version of the books that the admission store must have by now: the version of the first
 * comparison, because the updates of a busy tenant are always a little behind
 */
export function compareTenant(view: TenantView, appliedSince = view.before.version): Difference[] {
  const { tenantId, before, after, snapshot, asksForTenants, strayHolds, suspendedByAuth } = view;
  const differences: Difference[] = [];
  const differ = (check: string, expected: unknown, actual: unknown, ids: readonly string[] = []) =>
    differences.push({ check, tenantId, expected: String(expected), actual: String(actual), ids: [...ids] });
  if (suspendedByAuth !== undefined && [before, after].every(({ suspended }) => suspended !== suspendedByAuth))
    differ(STATUS, statusText(suspendedByAuth), statusText(after.suspended));
  if (!snapshot) {
    // An emptied store has lost the holds, too. If holds are left, it was not emptied.
    const lost = strayHolds.length > 0 || (before.version > 0n && !asksForTenants);
    const actual = strayHolds.length > 0 ? 'only holds' : 'nothing';
    if (lost) differ('the admission store knows the tenant', `version ${before.version}`, actual, strayHolds);
    return differences;
  }
  if (snapshot.unreadable !== undefined) {
    differ(READABLE, 'readable', snapshot.unreadable);
    return differences;
  }
  if (snapshot.version < appliedSince || snapshot.version > after.version) {
    differ(BALANCE_UPDATE, `version ${after.version}`, `version ${snapshot.version}`);
  }
  const heads = [before, after].filter(({ version }) => version === snapshot.version);
  const other = heads.find(({ balanceNanos }) => capped(balanceNanos) !== capped(snapshot.balanceNanos));
  if (other) differ('balance = balance of the admission store', other.balanceNanos, snapshot.balanceNanos);
  if (heads.some(({ suspended }) => suspended !== snapshot.suspended))
    differ('a suspended tenant is suspended in the admission store', !snapshot.suspended, snapshot.suspended);
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

const statusText = (suspended: boolean) => (suspended ? 'suspended' : 'active');

/** The balance as an admission store treats it. */
export function capped(nanos: bigint): bigint {
  if (nanos < -MAX_STORE_NANOS) return -MAX_STORE_NANOS;
  return nanos > MAX_STORE_NANOS ? MAX_STORE_NANOS : nanos;
}
