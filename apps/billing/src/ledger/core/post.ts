import { METERING_SOURCE, NANOS_PER_CENT } from '@tollgate/contracts';
import { LedgerError } from './accounts';
import { canPost, mayPostPart, type Books, type Month } from './books';
import { book, type Entry } from './entry';
import type { Period } from './period';

/** A contiguous range of charges on the ledger: chargesNanos + carriedInNanos = amountCents × 10⁷ + carriedOutNanos. */
export interface ChargeRange {
  tenantId: string;
  /** 1, 2, … per tenant. The ranges form a chain by the remainder that is carried on. */
  number: bigint;
  period: Period;
  fromSeq: bigint;
  toSeq: bigint;
  chargesNanos: bigint;
  carriedInNanos: bigint;
  amountCents: bigint;
  carriedOutNanos: bigint;
  /** Null if the range does not make a cent: at the end of a month, whose remainder the next range carries on. */
  entryId: string | null;
}

export interface Posted {
  books: Books;
  /** Only the months that changed. */
  months: Month[];
  entries: Entry[];
  ranges: ChargeRange[];
}

/** The first charges of a month, up to `toSeq`, and their sum. */
export interface Part {
  period: Period;
  toSeq: bigint;
  nanos: bigint;
}

/**
 * For books that have gathered more than the balance pays for: the first month that the balance does not cover, and how
 * much of it is affordable. Null if nothing needs to be looked up. A charge is covered whole or not at all, because one
 * entry names it. So the balance left is less than the next charge. That charge was held once, so it is at most what a
 * request may cost.
 */
export function partWanted(books: Books, months: readonly Month[]): { month: Month; limitNanos: bigint } | null {
  if (!mayPostPart(books)) return null;
  // Only whole cents of a sum of nanos are debited. Up to a cent less one nano is carried on.
  let limitNanos = (books.balanceCents + 1n) * NANOS_PER_CENT - 1n - books.carriedNanos;
  for (const month of oldestFirst(months)) {
    if (month.gatheredNanos > limitNanos) return { month, limitNanos };
    limitNanos -= month.gatheredNanos;
  }
  return null;
}

/**
 * Posts gathered usage: one entry per month, oldest first, in whole cents, each covering all of the month's charges so
 * far. The remainder below a cent is carried on. Charges of different months never share an entry. Posts nothing while
 * less than a whole cent has gathered. If the balance does not pay for everything, it posts whole months, oldest first,
 * and of the next one the affordable `part`.
 * @param months all months of the tenant with uncovered charges
 * @param part of the month that `partWanted` names: the longest within its limit; null if even the first charge is
 * above it
 * @param newEntryId called once for each entry
 */
export function post(
  books: Books,
  months: readonly Month[],
  newEntryId: () => string,
  part: Part | null = null,
): Posted {
  const posted: Posted = { books, months: [], entries: [], ranges: [] };
  const open = oldestFirst(months);
  const gathered = open.reduce((sum, month) => sum + month.gatheredNanos, 0n);
  if (gathered !== books.gatheredNanos)
    throw new LedgerError(`months of ${books.tenantId} hold ${gathered} nanos, its books ${books.gatheredNanos}`);
  if (!canPost(books)) return postPart(posted, open, newEntryId, part);
  for (const [index, month] of open.entries()) {
    const nanos = posted.books.carriedNanos + month.gatheredNanos;
    const amountCents = nanos / NANOS_PER_CENT;
    // The newest month keeps gathering until it makes a cent. Older months pass their remainder on.
    if (amountCents === 0n && index === open.length - 1) break;
    postMonth(posted, month, amountCents, nanos % NANOS_PER_CENT, newEntryId);
  }
  return posted;
}

function postPart(posted: Posted, open: readonly Month[], newEntryId: () => string, part: Part | null): Posted {
  const { books } = posted;
  const wanted = partWanted(books, open);
  if (!wanted) return posted;
  if (part && (part.period !== wanted.month.period || part.nanos > wanted.limitNanos || part.nanos < 0n))
    throw new LedgerError(`a part of ${part.period} of ${books.tenantId} is not what its balance covers`);
  for (const month of open) {
    const isPart = month.period === wanted.month.period;
    if (isPart && !part) break;
    const taken = isPart
      ? { toSeq: part!.toSeq, nanos: part!.nanos }
      : { toSeq: month.lastSeq, nanos: month.gatheredNanos };
    const nanos = posted.books.carriedNanos + taken.nanos;
    // In a month that is not covered whole, less than a cent keeps gathering.
    if (isPart && nanos < NANOS_PER_CENT) break;
    postMonth(posted, month, nanos / NANOS_PER_CENT, nanos % NANOS_PER_CENT, newEntryId, taken);
    if (isPart) break;
  }
  // If no month makes a cent, nothing is posted.
  return posted.entries.length > 0 ? posted : { books, months: [], entries: [], ranges: [] };
}

function oldestFirst(months: readonly Month[]): Month[] {
  return months.filter((month) => month.coveredSeq < month.lastSeq).sort((a, b) => (a.period < b.period ? -1 : 1));
}

/**
 * Covers all gathered usage in months up to `through`, so that they can be closed: whole cents as entries, and less
 * than a cent is carried on. Usage that the balance does not pay for stays, and so does everything after it.
 * @param months the tenant's months with uncovered charges, at least those up to `through`
 * @returns like `post`; months that could not be covered are not among its months
 */
export function postThrough(books: Books, months: readonly Month[], through: Period, newEntryId: () => string): Posted {
  const posted: Posted = { books, months: [], entries: [], ranges: [] };
  const ended = months
    .filter((month) => month.coveredSeq < month.lastSeq && month.period <= through)
    .sort((a, b) => (a.period < b.period ? -1 : 1));
  for (const month of ended) {
    const nanos = posted.books.carriedNanos + month.gatheredNanos;
    const amountCents = nanos / NANOS_PER_CENT;
    // Less than a cent needs no balance, so it may pass even in debt.
    if (amountCents > 0n && amountCents > posted.books.balanceCents) break;
    postMonth(posted, month, amountCents, nanos % NANOS_PER_CENT, newEntryId);
  }
  // Each entry increments the version. Carrying on a remainder alone is a change, too.
  if (posted.ranges.length > 0 && posted.entries.length === 0)
    posted.books = { ...posted.books, version: posted.books.version + 1n };
  return posted;
}

function postMonth(
  posted: Posted,
  month: Month,
  amountCents: bigint,
  carriedOutNanos: bigint,
  newEntryId: () => string,
  taken: { toSeq: bigint; nanos: bigint } = { toSeq: month.lastSeq, nanos: month.gatheredNanos },
): void {
  const { carriedNanos, gatheredNanos, lastCover } = posted.books;
  const fromSeq = month.coveredSeq + 1n;
  let entryId: string | null = null;
  if (amountCents > 0n) {
    const { books, entry } = book(posted.books, newEntryId(), {
      type: 'usage',
      amountCents: -amountCents,
      source: METERING_SOURCE,
      ref: chargeRangeRef(month.period, fromSeq, taken.toSeq),
      period: month.period,
      overrunCents: posted.books.overrunNanos / NANOS_PER_CENT,
    });
    posted.books = { ...books, overrunNanos: books.overrunNanos % NANOS_PER_CENT };
    posted.entries.push(entry);
    entryId = entry.id;
  }
  posted.ranges.push({
    tenantId: month.tenantId,
    number: lastCover + 1n,
    period: month.period,
    fromSeq,
    toSeq: taken.toSeq,
    chargesNanos: taken.nanos,
    carriedInNanos: carriedNanos,
    amountCents,
    carriedOutNanos,
    entryId,
  });
  posted.books = {
    ...posted.books,
    lastCover: lastCover + 1n,
    carriedNanos: carriedOutNanos,
    gatheredNanos: gatheredNanos - taken.nanos,
  };
  posted.months.push({
    ...month,
    coveredSeq: taken.toSeq,
    gatheredNanos: month.gatheredNanos - taken.nanos,
    debitedCents: month.debitedCents + amountCents,
  });
}

/** Names a range of charges, e.g. `2026-11:1-57`. It is the ref of the usage entry. */
function chargeRangeRef(period: Period, fromSeq: bigint, toSeq: bigint): string {
  return `${period}:${fromSeq}-${toSeq}`;
}
