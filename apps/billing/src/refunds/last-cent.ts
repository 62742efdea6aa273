import type { AdmissionStore } from '@tollgate/admission';
import { LAST_CENT_SOURCE } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';
import { bookEntry, type Booked, type BookingOptions } from '../ledger/booking';
import { lockBooks } from '../ledger/books-store';
import { balanceUpdate, lastCentUsedNanos, type Books } from '../ledger/core/books';
import type { EntryRequest } from '../ledger/core/entry';

/**
 * Usage may have taken a part of the last cent of a closed tenant. That cent can be neither refunded, because a part of
 * it is owed, nor debited as usage, because usage is posted in whole cents. So it is written off. The usage stays
 * carried, and is charged to nobody unless more usage comes late.
 *
 * Returns what usage took of it, in nanos. Zero if there is no such cent, or if requests still run or their usage has
 * not reached the books. Call it under the lock of the tenant's books. A closed tenant gets no new requests, so nothing
 * runs later either.
 */
export async function lastCentToWriteOff(admission: AdmissionStore, books: Books): Promise<bigint> {
  const usedNanos = lastCentUsedNanos(books);
  if (usedNanos === 0n) return 0n;
  const { tenantId, version, suspended } = books;
  // The status or a payment may still be on its way to the store.
  const balanceNanos = BigInt(balanceUpdate(books, []).balanceNanos);
  await admission.applyBalanceUpdates([{ tenantId, version, balanceNanos, releases: [], suspended }]);
  const [known] = await admission.snapshot({ tenantId, limit: 1 });
  const atRest =
    known?.tenantId === tenantId &&
    known.unreadable === undefined &&
    known.version === version &&
    known.pendingHolds === 0 &&
    known.settledHolds === 0;
  return atRest ? usedNanos : 0n;
}

/** Writes off the last cent when nothing else is left. The entry has the caller's ref, so that a repeat finds it. */
export function bookLastCent(
  tx: EntityManager,
  books: Books,
  asked: EntryRequest,
  usedNanos: bigint,
  options: BookingOptions,
): Promise<Booked> {
  const { type, amountCents, reason, all = false } = asked;
  const entry: EntryRequest = {
    ...asked,
    type: 'adjustment',
    amountCents: -1n,
    reason: reason ?? why(usedNanos),
    asked: { type, amountCents, reason, all },
  };
  return bookEntry(tx, books, entry, options);
}

/**
 * Books the remaining credit and writes off the last cent. An adjustment does both in one entry. A refund pays only the
 * remaining credit. So a separate entry before it writes off the cent.
 */
export async function bookWithLastCent(
  tx: EntityManager,
  books: Books,
  rest: EntryRequest,
  usedNanos: bigint,
  options: BookingOptions,
): Promise<Booked> {
  if (rest.type === 'adjustment') return bookEntry(tx, books, { ...rest, amountCents: rest.amountCents - 1n }, options);
  const lastCent: EntryRequest = {
    type: 'adjustment',
    amountCents: -1n,
    source: LAST_CENT_SOURCE,
    ref: `entry-${books.lastSequence + 1n}`,
    period: rest.period,
    reason: why(usedNanos),
  };
  await bookEntry(tx, books, lastCent, options);
  const after = (await lockBooks(tx, [books.tenantId])).get(books.tenantId)!;
  return bookEntry(tx, after, rest, options);
}

function why(usedNanos: bigint): string {
  return `The last cent of a closed tenant: usage took 0.${String(usedNanos).padStart(7, '0')} of it.`;
}
