import type { AdmissionStore } from '@tollgate/admission';
import type { Charge, BalanceUpdate, UsageEvent } from '@tollgate/contracts';

/** The part of the admission store that the histories use. */
export type Admission = Pick<
  AdmissionStore,
  'admit' | 'extend' | 'progress' | 'settle' | 'void' | 'sweep' | 'applyBalanceUpdates' | 'snapshot'
>;

/** The current books of a tenant. */
export interface BooksView {
  balanceCents: bigint;
  /** Gathered but not posted. */
  unpostedNanos: bigint;
  /** Nanos by request id. */
  charges: Map<string, bigint>;
  /** Differences that the audit of the ledger finds, including those of invoices and their numbers. */
  faults: string[];
}

/** A table whose change makes the transaction fail and roll back, or null for none. */
export type CrashIn =
  'usage_hour' | 'charge' | 'tenant_books' | 'journal_entry' | 'outbox' | 'invoice' | 'invoice_counter' | null;

/** A booking of an operator. `cents` is signed. */
export interface Booking {
  kind: 'topUp' | 'refund' | 'adjust';
  cents: number;
  ref: string;
  /** An adjustment that may take the balance below zero. It does not ask the admission store. */
  allowDebt: boolean;
}

/** A budget as the operator sets it. `keyId` null is the tenant's own budget. */
export interface SetBudget {
  keyId: string | null;
  cents: number | 'none' | 'default';
}

/**
 * The services below their transport. Each call is one transaction and returns the messages in its outbox. The test
 * simulates the world in between: queues, gateways and crashes. Implemented by the pure cores, and by the services on
 * real stores.
 */
export interface Stores {
  /** Epoch milliseconds, moved by the test. */
  clock: { nowMs: number };
  admission: Admission;
  /** Deletes all data of the admission store, which then asks the books for each tenant. Absent if it cannot. */
  empty?: (() => Promise<void>) | undefined;
  /** Returns the outbox, or null if the transaction failed and changed nothing. */
  recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null>;
  gather(batch: readonly Charge[], crash: CrashIn): Promise<BalanceUpdate[] | null>;
  post(crash: CrashIn): Promise<BalanceUpdate[] | null>;
  /** The admission store must grant money out first, except for an allowed debt. If `refused`, nothing changed. */
  money(tenantId: string, booking: Booking): Promise<{ updates: BalanceUpdate[]; refused: boolean }>;
  /**
   * Sets the status that auth publishes. Versions count up, and an older one changes nothing. The admission store gets
   * it at once, and again by the balance update.
   */
  status(tenantId: string, version: number, suspended: boolean): Promise<BalanceUpdate[]>;
  /** The admission store gets the budget at once, and again by the balance update. */
  setBudget(tenantId: string, budget: SetBudget): Promise<BalanceUpdate[]>;
  /** Closes the months that ended more than an hour ago. Null if it met the crash; some tenants may be closed then. */
  close(crash: CrashIn): Promise<BalanceUpdate[] | null>;
  books(tenantId: string): Promise<BooksView>;
}
