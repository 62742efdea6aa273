/**
 * How the books are proven across services, each of which reads only its own database. Events and charges share their
 * ids, so both sides are walked in the order of the ids, in ranges of bounded work: what a range adds up to is compared
 * first, and its ids are named only where that differs.
 */

/** Ids above `after` ('' for the first), up to `until` inclusive; the first `limit` of them. */
export interface EventRange {
  after: string;
  until?: string;
  limit: number;
}

/** What the events of a range add up to. */
export interface EventDigest {
  events: number;
  /** Decimal string. */
  costNanos: string;
  /** Sum of a hash of each id, tenant and cost: equal for the same events in any order. Decimal string. */
  digest: string;
  /** The last id when the limit was reached; null when the range ended first. */
  end: string | null;
}

export interface EventLine {
  id: string;
  tenantId: string;
  /** Decimal string. */
  costNanos: string;
}

/** The most that one request may ask for: a moment's work, and a reply that fits into a message. */
export const MAX_DIGEST_EVENTS = 50_000;
export const MAX_LISTED_EVENTS = 2_000;

/**
 * A difference that `reconcile` found: what was compared, for whom, both sides, and the requests, holds, entries or
 * invoices that it is about, as far as they can be told.
 */
export interface Difference {
  check: string;
  tenantId: string;
  expected: string;
  actual: string;
  ids: string[];
}

/** What one check found in a part of the books. `truncated`: it has not named all. */
export interface Found {
  differences: Difference[];
  truncated?: true;
}

/** So many differences a check names of one part of the books; one is enough to look further. It looks for one more. */
export const MAX_NAMED_OF_PART = 100;

export function named(found: readonly Difference[]): Found {
  const differences = found.slice(0, MAX_NAMED_OF_PART);
  return found.length > MAX_NAMED_OF_PART ? { differences, truncated: true } : { differences };
}

export interface ReconcileReport {
  ok: boolean;
  checkedAt: string;
  tenants: number;
  events: number;
  /** Sums over all tenants, decimal strings of nanos. */
  eventsNanos: string;
  chargesNanos: string;
  debitsNanos: string;
  carriedNanos: string;
  /** Holds at that moment: requests that run, and settled ones on their way into the books. Not differences. */
  pendingHolds: number;
  settledHolds: number;
  /**
   * Of all tenants, and a hash over all that they say: that of the newest entry of each, which has those before it in
   * it.
   */
  journalEntries: number;
  journalDigest: string;
  /** Those that the checks named; `differences` has the first MAX_NAMED_DIFFERENCES of them. */
  differenceCount: number;
  /**
   * There are more than `differences` has, and perhaps than `differenceCount` says: a check names some of a part of the
   * books, and goes on to the next.
   */
  truncated?: true;
  differences: Difference[];
}

/** What a repair changes, or would change, of what the admission store has of a tenant. Amounts are decimal strings. */
export interface StateChange {
  what:
    | 'state'
    | 'version'
    | 'balanceNanos'
    | 'suspended'
    | 'settledNanos'
    | 'pendingNanos'
    | 'inFlight'
    | 'withdrawnNanos';
  from: string;
  to: string;
}

export interface TenantRepair {
  tenantId: string;
  /**
   * Empty: the store had all of it right. Budgets, and the sums of keys, are made anew as well and are not among them.
   */
  changes: StateChange[];
  /** Holds that could not be read, and are gone. */
  droppedHolds: number;
  /** False: it was only looked at. */
  repaired: boolean;
}

export const MAX_NAMED_DIFFERENCES = 1_000;

/**
 * The newest entry of a tenant's journal. Its hash, in hex, has all entries before it in it: kept elsewhere, it shows
 * whether any of them was changed since.
 */
export interface JournalHead {
  tenantId: string;
  sequence: number;
  hash: string;
}

export const MAX_COMPARED_HEADS = 200;

/** A run of reconcile. It goes on by itself; `report` when it is `done`, `reason` when it `failed`. */
export type ReconcileRun =
  | { id: string; state: 'running'; startedAt: string; events: number; tenants: number; differenceCount: number }
  | { id: string; state: 'done'; startedAt: string; report: ReconcileReport }
  | { id: string; state: 'failed'; startedAt: string; reason: string };
