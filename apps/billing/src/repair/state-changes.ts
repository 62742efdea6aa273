import type { Snapshot } from '@tollgate/admission';
import type { StateChange } from '@tollgate/contracts';
import { balanceUpdate, type Books } from '../ledger/core/books';
import { capped } from '../reconcile/compare';

/** The changes that `repair` would make to such a state. */
export function stateChanges(books: Books, snapshot: Snapshot | undefined): StateChange[] {
  const balanceNanos = capped(BigInt(balanceUpdate(books, []).balanceNanos));
  const { version, suspended } = books;
  if (!snapshot || snapshot.unreadable !== undefined) {
    const state = snapshot ? `unreadable: ${snapshot.unreadable}` : 'nothing';
    return [{ what: 'state', from: state, to: `version ${version}, balance ${balanceNanos} nanos` }];
  }
  const changes: [StateChange['what'], from: unknown, to: unknown][] = [
    ['version', snapshot.version, version],
    ['balanceNanos', capped(snapshot.balanceNanos), balanceNanos],
    ['suspended', snapshot.suspended, suspended],
    ['settledNanos', snapshot.settledNanos, snapshot.holdRowsSettledNanos],
    ['pendingNanos', snapshot.pendingNanos, snapshot.holdRowsPendingNanos],
    ['inFlight', snapshot.inFlight, snapshot.pendingHolds],
    ['withdrawnNanos', snapshot.withdrawnNanos, 0],
  ];
  return changes
    .map(([what, from, to]) => ({ what, from: String(from), to: String(to) }))
    .filter(({ from, to }) => from !== to);
}

export type Poison = 'unreadable' | 'version' | 'balance' | 'suspended' | 'sums' | 'withdrawn';

/**
 * The reason why these books cannot have led to this state, or null. Called under the lock of the books, so no version
 * is being made, and the store can know only committed ones. A lower version is an update on its way, as long as it has
 * no more than the books had since (`isAboveAllSince`). A withdrawal is made under the lock of the books. If its
 * process died, the withdrawal stays, with its intent, until a further version gives it up (refunds/money-out.ts).
 */
export function poisonOf(books: Books, snapshot: Snapshot | undefined, mayBeWithdrawn: boolean): Poison | null {
  if (!snapshot) return null;
  if (snapshot.unreadable !== undefined) return 'unreadable';
  if (snapshot.version > books.version) return 'version';
  const { settledNanos, pendingNanos, inFlight } = snapshot;
  const areSumsRight =
    settledNanos === snapshot.holdRowsSettledNanos &&
    pendingNanos === snapshot.holdRowsPendingNanos &&
    inFlight === BigInt(snapshot.pendingHolds);
  if (!areSumsRight) return 'sums';
  if (snapshot.version < books.version) return null;
  if (snapshot.suspended !== books.suspended) return 'suspended';
  if (snapshot.withdrawnNanos > 0n && !mayBeWithdrawn) return 'withdrawn';
  const balanceNanos = BigInt(balanceUpdate(books, []).balanceNanos);
  return capped(snapshot.balanceNanos + snapshot.withdrawnNanos) === capped(balanceNanos) ? null : 'balance';
}
