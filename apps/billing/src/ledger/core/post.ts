import { NANOS_PER_CENT } from '@tollgate/contracts';
import { LedgerError } from './accounts';
import { canPost, type Books, type Month } from './books';
import { book, METERING_SOURCE, type Entry } from './entry';
import type { Period } from './period';

/** A contiguous range of charges that is taken onto the ledger: chargesNanos + carriedInNanos = amountCents × 10⁷ + carriedOutNanos. */
export interface Cover {
  tenantId: string;
  /** 1, 2, … per tenant: a chain by the rest that is carried on. */
  number: bigint;
  period: Period;
  fromSeq: bigint;
  toSeq: bigint;
  chargesNanos: bigint;
  carriedInNanos: bigint;
  amountCents: bigint;
  carriedOutNanos: bigint;
  /** Null where the range does not make a cent: the end of a month, whose rest the next one takes on. */
  entryId: string | null;
}

export interface Posted {
  books: Books;
  /** Only the months that changed. */
  months: Month[];
  entries: Entry[];
  covers: Cover[];
}

/**
 * Posts what has gathered: one entry a month, oldest first, in whole cents, each covering all of the month's charges so far; the sub-cent rest is carried
 * on. Charges of different months never share an entry. Nothing when not a whole cent has gathered or the balance does not pay for it.
 * @param months the tenant's months with uncovered charges, all of them
 * @param newEntryId called once for each entry
 */
export function post(books: Books, months: readonly Month[], newEntryId: () => string): Posted {
  const posted: Posted = { books, months: [], entries: [], covers: [] };
  const open = months
    .filter((month) => month.coveredSeq < month.lastSeq)
    .sort((a, b) => (a.period < b.period ? -1 : 1));
  const gathered = open.reduce((sum, month) => sum + month.gatheredNanos, 0n);
  if (gathered !== books.gatheredNanos)
    throw new LedgerError(`months of ${books.tenantId} hold ${gathered} nanos, its books ${books.gatheredNanos}`);
  if (!canPost(books)) return posted;
  for (const [index, month] of open.entries()) {
    const nanos = posted.books.carriedNanos + month.gatheredNanos;
    const amountCents = nanos / NANOS_PER_CENT;
    // The newest month goes on gathering until it makes a cent; older ones hand on what they have.
    if (amountCents === 0n && index === open.length - 1) break;
    postMonth(posted, month, amountCents, nanos % NANOS_PER_CENT, newEntryId);
  }
  return posted;
}

/**
 * Takes all that has gathered in months up to `through` onto the ledger, so that they can be closed: whole cents as entries, a rest of less than a cent is carried on. What the balance
 * does not pay for stays, with all that comes after it.
 * @param months the tenant's months with uncovered charges, at least those up to `through`
 * @returns as `post`; the months that could not be covered are not among its months
 */
export function postThrough(books: Books, months: readonly Month[], through: Period, newEntryId: () => string): Posted {
  const posted: Posted = { books, months: [], entries: [], covers: [] };
  const ended = months
    .filter((month) => month.coveredSeq < month.lastSeq && month.period <= through)
    .sort((a, b) => (a.period < b.period ? -1 : 1));
  for (const month of ended) {
    const nanos = posted.books.carriedNanos + month.gatheredNanos;
    const amountCents = nanos / NANOS_PER_CENT;
    // Less than a cent asks nothing of the balance, not even of a debt.
    if (amountCents > 0n && amountCents > posted.books.balanceCents) break;
    postMonth(posted, month, amountCents, nanos % NANOS_PER_CENT, newEntryId);
  }
  // Each entry counts the version up; a rest that is only carried on is a change, too.
  if (posted.covers.length > 0 && posted.entries.length === 0)
    posted.books = { ...posted.books, version: posted.books.version + 1n };
  return posted;
}

function postMonth(
  posted: Posted,
  month: Month,
  amountCents: bigint,
  carriedOutNanos: bigint,
  newEntryId: () => string,
): void {
  const { carriedNanos, gatheredNanos, lastCover } = posted.books;
  const fromSeq = month.coveredSeq + 1n;
  let entryId: string | null = null;
  if (amountCents > 0n) {
    const { books, entry } = book(posted.books, newEntryId(), {
      type: 'usage',
      amountCents: -amountCents,
      source: METERING_SOURCE,
      ref: coverRef(month.period, fromSeq, month.lastSeq),
      period: month.period,
      overrunCents: posted.books.overrunNanos / NANOS_PER_CENT,
    });
    posted.books = { ...books, overrunNanos: books.overrunNanos % NANOS_PER_CENT };
    posted.entries.push(entry);
    entryId = entry.id;
  }
  posted.covers.push({
    tenantId: month.tenantId,
    number: lastCover + 1n,
    period: month.period,
    fromSeq,
    toSeq: month.lastSeq,
    chargesNanos: month.gatheredNanos,
    carriedInNanos: carriedNanos,
    amountCents,
    carriedOutNanos,
    entryId,
  });
  posted.books = {
    ...posted.books,
    lastCover: lastCover + 1n,
    carriedNanos: carriedOutNanos,
    gatheredNanos: gatheredNanos - month.gatheredNanos,
  };
  posted.months.push({
    ...month,
    coveredSeq: month.lastSeq,
    gatheredNanos: 0n,
    debitedCents: month.debitedCents + amountCents,
  });
}

/** Names a range of charges, as in `2026-11:1-57`: the ref of its usage entry. */
export function coverRef(period: Period, fromSeq: bigint, toSeq: bigint): string {
  return `${period}:${fromSeq}-${toSeq}`;
}
