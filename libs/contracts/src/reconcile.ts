/**
 * How the books are proven across services, each of which reads only its own database. Events and charges share their
 * ids, so both sides are walked by id, in ranges of bounded size. The totals of a range are compared first. Its ids are
 * listed only if the totals differ.
 */

/** The first `limit` ids above `after` ('' for the first), up to and including `until`. */
export interface EventRange {
  after: string;
  until?: string;
  limit: number;
}

/** The totals of a range of events. */
export interface EventDigest {
  events: number;
  /** Decimal string. */
  costNanos: string;
  /** The sum of a hash of each id, tenant and cost: equal for the same events in any order. Decimal string. */
  digest: string;
  /** The same sum with key, end and overrun instead of tenant and cost. Absent: metering is of an earlier version. */
  detailsDigest?: string;
  /** The last id if the limit was reached; null if the range ended first. */
  end: string | null;
}

/** The totals of all events, or of all charges, with ids of one month (YYYY-MM), as in EventDigest. */
export interface MonthTotals extends Omit<EventDigest, 'end' | 'detailsDigest'> {
  month: string;
}

/**
 * A month that metering has closed for events, and whose events may be dropped. The months adjoin. The first one begins
 * with the id ''.
 */
export interface RetiredMonth extends MonthTotals {
  /** Its ids: from this one up to, but without, `untilId`. */
  fromId: string;
  untilId: string;
  /** As in EventDigest. Null or absent: an earlier version of metering summed the events or answers. */
  detailsDigest?: string | null;
  /** Billing had the same totals. */
  confirmed: boolean;
}

export interface EventLine {
  id: string;
  tenantId: string;
  /** Decimal string. */
  costNanos: string;
  /** Absent: metering is of an earlier version. */
  details?: {
    keyId: string;
    /** ISO 8601 with microseconds, as far as the column goes. */
    endedAt: string;
    /** Decimal string. */
    overrunNanos: string;
  };
}

/** The maximum of one request: little work, and a reply that fits into a message. */
export const MAX_DIGEST_EVENTS = 50_000;
export const MAX_LISTED_EVENTS = 2_000;
/** The longest audit of a part of the rollups. A part has at least one tenant's hour, with any number of events. */
export const MAX_ROLLUP_AUDIT_MS = 10 * 60_000;

/**
 * A difference that `reconcile` found: what was compared, for which tenant, both sides, and the requests, holds,
 * entries or invoices concerned, if they are known.
 */
export interface Difference {
  check: string;
  tenantId: string;
  expected: string;
  actual: string;
  ids: string[];
}

/** The result of one check on a part of the books. `truncated`: it did not list all differences. */
export interface Found {
  differences: Difference[];
  truncated?: true;
}

/** The maximum number of differences that a check lists for a part of the books. The check looks for one more. */
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
  /**
   * Holds at that moment: of running requests, and settled ones that the books will include. They are not differences.
   */
  pendingHolds: number;
  settledHolds: number;
  /**
   * The heads of all tenants' journals, and a hash over them. A head is the hash of the newest entry, which covers all
   * entries before it.
   */
  journalEntries: number;
  journalDigest: string;
  /** The number of differences that the checks listed. `differences` has the first MAX_NAMED_DIFFERENCES of them. */
  differenceCount: number;
  /**
   * True: more differences exist than `differences` has, and possibly than `differenceCount` says. A check lists some
   * of a part of the books and continues with the next part.
   */
  truncated?: true;
  differences: Difference[];
}

/**
 * The changes of a repair, or of its dry run, to the admission store's state of a tenant. Amounts are decimal strings.
 */
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
   * Empty: everything in the store was right. Budgets and the sums of keys are also recomputed, but not listed here.
   */
  changes: StateChange[];
  /** Unreadable holds, which were dropped. */
  droppedHolds: number;
  /** False: a dry run. */
  repaired: boolean;
}

export const MAX_NAMED_DIFFERENCES = 1_000;

/**
 * The newest entry of a tenant's journal. Its hash, in hex, covers all entries before it. A copy kept elsewhere shows
 * whether any of them was changed later.
 */
export interface JournalHead {
  tenantId: string;
  sequence: number;
  hash: string;
}

export const MAX_COMPARED_HEADS = 200;

/** A run of reconcile, in the background. It has a `report` when it is `done`, and a `reason` when it `failed`. */
export type ReconcileRun =
  | { id: string; state: 'running'; startedAt: string; events: number; tenants: number; differenceCount: number }
  | { id: string; state: 'done'; startedAt: string; report: ReconcileReport }
  | { id: string; state: 'failed'; startedAt: string; reason: string };
