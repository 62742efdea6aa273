import type { AdmissionStore } from '@tollgate/admission';
import type { Charge, CreditNews, UsageEvent } from '@tollgate/contracts';

/** What of the admission store takes part. */
export type Admission = Pick<
  AdmissionStore,
  'admit' | 'extend' | 'progress' | 'settle' | 'void' | 'sweep' | 'applyNews' | 'snapshot'
>;

/** A tenant's books as they stand. */
export interface BooksView {
  balanceCents: bigint;
  /** Gathered, not posted. */
  unpostedNanos: bigint;
  /** Nanos by request id. */
  charges: Map<string, bigint>;
  /** Differences that the ledger's own audit finds. */
  faults: string[];
}

/** A table in whose change a transaction fails, and with it all that it did; null: none. */
export type CrashIn = 'usage_hour' | 'charge' | 'tenant_books' | 'journal_entry' | 'outbox' | null;

/**
 * The services below their transport: each call is one transaction of theirs, and what it returns is what it left in its outbox. The world in between (queues, gateways, crashes) is the
 * test's. Implemented by the pure cores, and by the services on real stores.
 */
export interface Stores {
  /** Epoch milliseconds; the test moves it. */
  clock: { nowMs: number };
  admission: Admission;
  /** The outbox; null: the transaction failed, and changed nothing. */
  recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null>;
  gather(batch: readonly Charge[], crash: CrashIn): Promise<CreditNews[] | null>;
  post(crash: CrashIn): Promise<CreditNews[] | null>;
  /** Signed cents: a top-up, or a refund that the store must grant first. `refused`: nothing changed. */
  money(tenantId: string, cents: number, ref: string): Promise<{ news: CreditNews[]; refused: boolean }>;
  books(tenantId: string): Promise<BooksView>;
}
