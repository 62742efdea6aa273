import type { AdmissionStore } from '@tollgate/admission';
import type { Charge, BalanceUpdate, UsageEvent } from '@tollgate/contracts';

/** What of the admission store takes part. */
export type Admission = Pick<
  AdmissionStore,
  'admit' | 'extend' | 'progress' | 'settle' | 'void' | 'sweep' | 'applyBalanceUpdates' | 'snapshot'
>;

/** A tenant's books as they stand. */
export interface BooksView {
  balanceCents: bigint;
  /** Gathered, not posted. */
  unpostedNanos: bigint;
  /** Nanos by request id. */
  charges: Map<string, bigint>;
  /** Differences that the ledger's own audit finds, invoices and their numbers included. */
  faults: string[];
}

/** A table in whose change a transaction fails, and with it all that it did; null: none. */
export type CrashIn =
  'usage_hour' | 'charge' | 'tenant_books' | 'journal_entry' | 'outbox' | 'invoice' | 'invoice_counter' | null;

/** What a person books. `cents`: signed. */
export interface Booking {
  kind: 'topUp' | 'refund' | 'adjust';
  cents: number;
  ref: string;
  /** Of an adjustment: may take the balance below zero, and does not ask the admission store. */
  allowDebt: boolean;
}

/** A budget as the operator sets it; null: the tenant's own. */
export interface SetBudget {
  keyId: string | null;
  cents: number | 'none' | 'default';
}

/**
 * The services below their transport: each call is one transaction of theirs, and what it returns is what it left in
 * its outbox. The world in between (queues, gateways, crashes) is the test's. Implemented by the pure cores, and by the
 * services on real stores.
 */
export interface Stores {
  /** Epoch milliseconds; the test moves it. */
  clock: { nowMs: number };
  admission: Admission;
  /** The admission store loses all that it knows, and asks the books for each tenant again; absent where it cannot. */
  empty?: (() => Promise<void>) | undefined;
  /** The outbox; null: the transaction failed, and changed nothing. */
  recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null>;
  gather(batch: readonly Charge[], crash: CrashIn): Promise<BalanceUpdate[] | null>;
  post(crash: CrashIn): Promise<BalanceUpdate[] | null>;
  /**
   * Money out must be granted by the admission store first, but for a debt that is allowed. `refused`: nothing changed.
   */
  money(tenantId: string, booking: Booking): Promise<{ news: BalanceUpdate[]; refused: boolean }>;
  /**
   * As auth tells it, by versions that count up; an older one changes nothing. The admission store is told at once, and
   * by the news.
   */
  status(tenantId: string, version: number, suspended: boolean): Promise<BalanceUpdate[]>;
  /** The admission store is told at once, and by the news. */
  setBudget(tenantId: string, budget: SetBudget): Promise<BalanceUpdate[]>;
  /**
   * Closes the months that have been over for an hour; null: it met the crash, and tenants may have been closed before.
   */
  close(crash: CrashIn): Promise<BalanceUpdate[] | null>;
  books(tenantId: string): Promise<BooksView>;
}
