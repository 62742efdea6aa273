import { NANOS_PER_CENT, type BalanceUpdate } from '@tollgate/contracts';
import type { Period } from './period';

/** The head of one tenant's books. Immutable: each operation returns the next state. */
export interface Books {
  readonly tenantId: string;
  /** Incremented by every change. */
  readonly version: bigint;
  readonly balanceCents: bigint;
  /** Sequence number of the newest journal entry, or 0. */
  readonly lastSequence: bigint;
  /** Number of the newest charge range, or 0. */
  readonly lastCover: bigint;
  /** The remainder of the newest charge range: less than a cent. */
  readonly carriedNanos: bigint;
  /** Charges not yet covered. */
  readonly gatheredNanos: bigint;
  /** Served beyond holds, charged to nobody, and not booked yet. This is the operator's loss. */
  readonly overrunNanos: bigint;
  readonly suspended: boolean;
}

/** One tenant's usage of one month. */
export interface Month {
  readonly tenantId: string;
  readonly period: Period;
  /** The number of the newest charge, and of the newest one in a charge range, or 0. */
  readonly lastSeq: bigint;
  readonly coveredSeq: bigint;
  /** Sum of the charges between these two. */
  readonly gatheredNanos: bigint;
  /** Sum of the month's usage debits: the amount of its invoice. */
  readonly debitedCents: bigint;
  /** A closed month gets no more usage. */
  readonly closed: boolean;
}

/** Balances stay below this, so that every amount is a safe integer in JSON. */
export const MAX_BALANCE_CENTS = BigInt(Number.MAX_SAFE_INTEGER);

export function newMonth(tenantId: string, period: Period): Month {
  return { tenantId, period, lastSeq: 0n, coveredSeq: 0n, gatheredNanos: 0n, debitedCents: 0n, closed: false };
}

/** Gathered usage that is not on the ledger yet. */
export function unpostedNanos(books: Books): bigint {
  return books.carriedNanos + books.gatheredNanos;
}

/**
 * Whether all gathered usage can be posted: at least a cent has gathered, and the balance pays for all of it. More than
 * the balance can gather only where holds were lost. Then the affordable part is posted (`post.ts`), the remainder
 * waits for the next top-up, and balance updates include the debt. Usage never takes a balance below zero.
 */
export function canPost(books: Books): boolean {
  const cents = unpostedNanos(books) / NANOS_PER_CENT;
  return cents >= 1n && cents <= books.balanceCents;
}

/**
 * More has gathered than the balance pays for, and the balance is at least a cent. Only the charges tell whether some
 * of them can be covered.
 */
export function mayPostPart(books: Books): boolean {
  const cents = unpostedNanos(books) / NANOS_PER_CENT;
  return cents > books.balanceCents && books.balanceCents >= 1n;
}

/** The largest possible refund, in whole cents: the balance less unposted usage. Never negative. */
export function refundableCents(books: Books): bigint {
  const nanos = books.balanceCents * NANOS_PER_CENT - unpostedNanos(books);
  return nanos > 0n ? nanos / NANOS_PER_CENT : 0n;
}

/**
 * The amount that brings these books within a cent of zero, in whole cents. Negative for credit: all that can be
 * refunded. Positive for a debt: usage that the balance does not pay for, or a balance below zero. A closed tenant runs
 * nothing more, so a debt below a cent stays carried.
 */
export function clearingCents(books: Books, { closed }: { closed: boolean }): bigint {
  const nanos = books.balanceCents * NANOS_PER_CENT - unpostedNanos(books);
  if (nanos >= 0n || closed) return -(nanos / NANOS_PER_CENT);
  return (-nanos + NANOS_PER_CENT - 1n) / NANOS_PER_CENT;
}

/**
 * What usage has taken of the last cent of the credit, in nanos. That cent can be neither refunded nor debited. Zero if
 * usage took whole cents, or if there is no credit.
 */
export function lastCentUsedNanos(books: Books): bigint {
  const nanos = books.balanceCents * NANOS_PER_CENT - unpostedNanos(books);
  return nanos > 0n && nanos % NANOS_PER_CENT > 0n ? NANOS_PER_CENT - (nanos % NANOS_PER_CENT) : 0n;
}

/** The state for the admission store: see BalanceUpdate. */
export function balanceUpdate(books: Books, releases: readonly string[]): BalanceUpdate {
  return {
    tenantId: books.tenantId,
    version: String(books.version),
    balanceNanos: String(books.balanceCents * NANOS_PER_CENT - unpostedNanos(books)),
    releases: [...releases],
    suspended: books.suspended,
  };
}

/** Groups rows by tenant, in the order given. */
export function byTenant<T extends { readonly tenantId: string }>(rows: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(row.tenantId);
    if (group) group.push(row);
    else groups.set(row.tenantId, [row]);
  }
  return groups;
}
