import type { Difference } from '@tollgate/contracts';
import type { Snapshot } from '@tollgate/admission';

/** The running state of a tenant's books, as cheap to read as one row. */
export interface Head {
  version: bigint;
  /** As the credit news of this version tells it. */
  balanceNanos: bigint;
  charges: bigint;
  chargesNanos: bigint;
}

export interface EventSums {
  events: bigint;
  costNanos: bigint;
}

/** One tenant in all stores. The heads enclose the others in time: read before and after them. */
export interface TenantView {
  tenantId: string;
  before: Head;
  events: EventSums;
  snapshot: Snapshot | undefined;
  after: Head;
  /** Oldest settled hold, when its charge was gathered so long ago that it should have been released. */
  overdueHold: string | undefined;
}

/** Admission stores count in 64 bits and treat a balance beyond this (4 × 10⁹ currency units) as this. */
const MAX_STORE_NANOS = 4n * 10n ** 18n;

export const NO_BOOKS: Head = { version: 0n, balanceNanos: 0n, charges: 0n, chargesNanos: 0n };
export const NO_EVENTS: EventSums = { events: 0n, costNanos: 0n };

/**
 * Compares the books with what stands on either side of them: metering's events and the admission store. What is on its way is no difference:
 * the heads were read around the others, so each number must lie between them, and an event whose charge is not gathered yet still has its settled
 * hold. A difference found once may be movement that this cannot see: ask again before believing it.
 * @param newsSince version of the books that the admission store must know by now: that of the first comparison, as the news of a busy tenant is always a little behind
 */
export function compareTenant(view: TenantView, newsSince = view.before.version): Difference[] {
  const differences: Difference[] = [];
  const differ = (check: string, expected: unknown, actual: unknown) =>
    differences.push({ check, tenantId: view.tenantId, expected: String(expected), actual: String(actual) });
  compareEvents(view, differ);
  if (view.snapshot) compareAdmission(view, view.snapshot, newsSince, differ);
  else if (view.before.version > 0n)
    differ('the admission store knows the tenant', `version ${view.before.version}`, 'nothing');
  return differences;
}

type Differ = (check: string, expected: unknown, actual: unknown) => void;

function compareEvents({ before, events, snapshot, after }: TenantView, differ: Differ): void {
  const settledHolds = BigInt(snapshot?.settledHolds ?? 0);
  const settledNanos = snapshot?.settledNanos ?? 0n;
  // What of the events can be charged already, and what must be: the rest is on its way under a settled hold.
  const countFits = before.charges <= events.events && events.events <= after.charges + settledHolds;
  const nanosFit = before.chargesNanos <= events.costNanos && events.costNanos <= after.chargesNanos + settledNanos;
  const still = before.charges === events.events && events.events === after.charges;
  if (!countFits || !nanosFit || (still && before.chargesNanos !== events.costNanos)) {
    differ('events = charges', describe(events.events, events.costNanos), describe(after.charges, after.chargesNanos));
  }
}

function compareAdmission(
  { before, after, overdueHold }: TenantView,
  snapshot: Snapshot,
  newsSince: bigint,
  differ: Differ,
): void {
  if (snapshot.version < newsSince || snapshot.version > after.version) {
    differ('the admission store has the news of the books', `version ${after.version}`, `version ${snapshot.version}`);
  }
  for (const head of [before, after]) {
    if (snapshot.version !== head.version || capped(snapshot.balanceNanos) === capped(head.balanceNanos)) continue;
    differ('balance = balance of the admission store', head.balanceNanos, snapshot.balanceNanos);
    break;
  }
  if (snapshot.settledNanos !== snapshot.holdRowsSettledNanos) {
    differ('settled sum = sum of settled holds', snapshot.holdRowsSettledNanos, snapshot.settledNanos);
  }
  if (snapshot.pendingNanos !== snapshot.holdRowsPendingNanos) {
    differ('pending sum = sum of pending holds', snapshot.holdRowsPendingNanos, snapshot.pendingNanos);
  }
  if (overdueHold !== undefined)
    differ('a hold is released once its charge is gathered', 'released', `${overdueHold} still settled`);
}

function capped(nanos: bigint): bigint {
  return nanos > MAX_STORE_NANOS ? MAX_STORE_NANOS : nanos;
}

function describe(count: bigint, nanos: bigint): string {
  return `${count} of ${nanos} nanos`;
}
