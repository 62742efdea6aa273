// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
export interface EventRange {
  after: string;
  until?: string;
  limit: number;
}
export interface EventDigest {
  events: number;
  costNanos: string;
  digest: string;
  end: string | null;
}
export interface EventLine {
  id: string;
  tenantId: string;
  costNanos: string;
}
export declare const MAX_DIGEST_EVENTS = 50000;
export declare const MAX_LISTED_EVENTS = 2000;
export interface Difference {
  check: string;
  tenantId: string;
  expected: string;
  actual: string;
  ids: string[];
}
export interface Found {
  differences: Difference[];
  truncated?: true;
}
export declare const MAX_NAMED_OF_PART = 100;
export declare function named(found: readonly Difference[]): Found;
export interface ReconcileReport {
  ok: boolean;
  checkedAt: string;
  tenants: number;
  events: number;
  eventsNanos: string;
  chargesNanos: string;
  debitsNanos: string;
  carriedNanos: string;
  pendingHolds: number;
  settledHolds: number;
  journalEntries: number;
  journalDigest: string;
  differenceCount: number;
  truncated?: true;
  differences: Difference[];
}
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
  changes: StateChange[];
  droppedHolds: number;
  repaired: boolean;
}
export declare const MAX_NAMED_DIFFERENCES = 1000;
export interface JournalHead {
  tenantId: string;
  sequence: number;
  hash: string;
}
export declare const MAX_COMPARED_HEADS = 200;
export type ReconcileRun =
  | {
      id: string;
      state: 'running';
      startedAt: string;
      events: number;
      tenants: number;
      differenceCount: number;
    }
  | {
      id: string;
      state: 'done';
      startedAt: string;
      report: ReconcileReport;
    }
  | {
      id: string;
      state: 'failed';
      startedAt: string;
      reason: string;
    };
