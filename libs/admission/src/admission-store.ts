import type { UnavailableError, UsageDraft, UsageEvent } from '@tollgate/contracts';
import type { ItemFailure } from './item-failures';

/** Per minute, and at once. Whole numbers of at least 1. */
export interface Limits {
  requestsPerMinute: number;
  tokensPerMinute: number;
  concurrency: number;
}

/** One request that wants to run. Money in nanos, prices per token in femtos (contracts/money.ts). */
export interface AdmitRequest {
  /** The unchanging part of the usage event; its `id` is the hold's id, and makes a repeat harmless. */
  draft: UsageDraft;
  tenantLimits: Limits;
  keyLimits: Limits;
  /**
   * Budgets for the calendar month (UTC) that the configuration gives by default, null for none. What the operator set
   * (`Budget`) stands before them.
   */
  keyBudgetNanos: bigint | null;
  tenantBudgetNanos: bigint | null;
  /** Upper bound of the prompt's tokens. */
  promptTokens: number;
  /** What prompt and request price cost at most: bound × input price + request price, in femtos. */
  promptFemtos: bigint;
  outputFemtosPerToken: bigint;
  /**
   * Output tokens that this hold should cover, over all choices (`n` × `max_tokens`, or `n` × slice); 0 for embeddings.
   */
  wantOutputTokens: number;
  /**
   * Granted at the least, when credit or a budget affords it but other requests' holds are in the way: below it the
   * answer is `credit_held`. 1 … wantOutputTokens (0 for embeddings).
   */
  minOutputTokens: number;
  /**
   * False: the prompt bound is the cheap one. The store then answers `bound` instead of clamping or refusing for money,
   * and the caller counts exactly and asks again.
   */
  boundIsExact: boolean;
}

/** Where a limit of the key stands, for the `x-ratelimit-*` headers. */
export interface LimitState {
  requestsRemaining: number;
  /** Until the bucket is full again. */
  requestsResetMs: number;
  tokensRemaining: number;
  tokensResetMs: number;
}

export type Refusal =
  | 'tenant_suspended'
  | 'requests'
  | 'tokens'
  | 'concurrency'
  | 'budget_reached'
  /** Spendable credit does not pay for the prompt and one token. */
  | 'credit_exhausted'
  /** Only other requests' holds are in the way. */
  | 'credit_held'
  /** Count the prompt exactly and ask again (only when `boundIsExact` was false). */
  | 'bound';

export type AdmitResult =
  /**
   * `storeEpoch`: of a store that may be emptied while it runs; give it back with what follows, so that a hold which
   * the store lost is told from one that ended.
   */
  | { kind: 'held'; holdNanos: bigint; outputTokens: number; limits: LimitState; storeEpoch?: string }
  /**
   * `scope`: whose limit or budget fired. `retryAfterMs`: where time cures it, when the same request would be admitted.
   * For `requests` and `tokens` that is exact, unless others come first. For `credit_held` and `concurrency` it is an
   * estimate, as nobody knows when a running request ends: the tenant's holds that ended lately lasted so long in the
   * mean, divided by how many of the scope run now, is when the next one is expected to end; at least 1 s (also as long
   * as none ended yet), at most 60 s.
   */
  | { kind: 'refused'; reason: Refusal; scope: 'key' | 'tenant'; retryAfterMs: number | null; limits: LimitState };

/** What limits a request of either kind. */
export type Limited = Pick<AdmitRequest, 'keyLimits' | 'tenantLimits' | 'keyBudgetNanos' | 'tenantBudgetNanos'>;

/** Who is about to send a request of which nothing is known yet. */
export interface LookRequest {
  tenantId: string;
  keyId: string;
  tenantLimits: Limits;
  keyLimits: Limits;
  keyBudgetNanos: bigint | null;
  tenantBudgetNanos: bigint | null;
  /** False: it may be for a model that costs nothing, so neither credit nor a budget stands in the way. */
  isPaid: boolean;
}

/**
 * As `admit` would refuse a request of the least size (one output token, for a nano) at this moment. `clear` promises
 * nothing: others may come first.
 */
export type LookResult = { kind: 'clear'; limits: LimitState } | LookRefusal;
export type LookRefusal = Extract<AdmitResult, { kind: 'refused' }> & { reason: Exclude<Refusal, 'bound'> };

export interface ExtendRequest {
  id: string;
  tenantId: string;
  /**
   * By how much the hold should grow. Granted is min(wantNanos, available credit and budget), or nothing when that is
   * below minNanos.
   */
  wantNanos: bigint;
  minNanos: bigint;
  /** As `admit` gave it. */
  storeEpoch?: string | undefined;
}

/**
 * `refused`: credit or budget do not reach `minNanos`, or the store was emptied since the admission: what is held is
 * all. `forbidden`: no such pending hold (expired, settled, void).
 */
export type ExtendResult =
  { kind: 'extended'; grantedNanos: bigint; holdNanos: bigint } | { kind: 'refused' } | { kind: 'forbidden' };

/**
 * A sign of life of a running request: renews the hold's deadline and, for a stream, records what was delivered so far.
 */
export interface Progress {
  id: string;
  tenantId: string;
  /** Null: nothing delivered yet (or not streamed): only the deadline moves, and an expiry voids the hold. */
  delivered: { promptTokens: number; cachedTokens: number; completionTokens: number; costNanos: bigint } | null;
  /** As `admit` gave it. */
  storeEpoch?: string | undefined;
}

export interface Settlement {
  /**
   * The whole usage event: becomes the hold's record until the ledger has taken it in. `event.costNanos` is the cost.
   */
  event: UsageEvent;
  /** As `admit` gave it. */
  storeEpoch?: string | undefined;
}

/**
 * `settled`: durable; `event` is the record that stands. A repeat, and a settlement after expiry, get the first result
 * (`repeated: true`). `lost`: the store was emptied since the admission, and the hold went with everything else. Nobody
 * but the caller has the event now: it publishes it, durably, before the answer ends. `forbidden`: there is no such
 * hold (never admitted, void, or long released); counted, as every forbidden transition is (admission-metrics.ts).
 */
export type SettleResult =
  { kind: 'settled'; repeated: boolean; event: UsageEvent } | { kind: 'lost' } | { kind: 'forbidden' };

/** As BalanceUpdate of the contracts, with amounts as bigint. */
export interface ParsedBalanceUpdate {
  tenantId: string;
  version: bigint;
  balanceNanos: bigint;
  releases: readonly string[];
  suspended: boolean;
  /** Those that changed; each is applied only if it is newer than what the store has of it. */
  budgets?: readonly Budget[];
}

/**
 * What the operator set for a calendar month (UTC). In force for each admission and each extension from the instant at
 * which it is applied.
 */
export interface Budget {
  /** Null: the tenant's own, over all its keys. */
  keyId: string | null;
  /** Counts up with each change of this budget, from 1. */
  version: bigint;
  /** `none`: no budget at all, whatever the configuration says. `default`: what the configuration says. */
  nanos: bigint | 'none' | 'default';
}

/** A debit that the books are about to take: a refund. */
export interface Withdrawal {
  tenantId: string;
  /**
   * Of the books with the debit inside; the caller holds the tenant's books locked, so that nobody else makes this
   * version meanwhile.
   */
  version: bigint;
  nanos: bigint;
}

/** `overtaken`: the store has heard of this version already, so the books have it without this debit. */
export type WithdrawResult =
  { kind: 'withdrawn' } | { kind: 'refused'; availableNanos: bigint } | { kind: 'overtaken' };

/** Charged in a calendar month (UTC, `YYYY-MM`), by the instants at which requests ended. */
export interface MonthSpent {
  month: string;
  tenantNanos: bigint;
  keys: readonly { keyId: string; nanos: bigint }[];
}

/**
 * A tenant as the books have it. The caller holds the tenant's books locked, so that nobody makes a newer version
 * meanwhile.
 */
export interface Repair extends Omit<ParsedBalanceUpdate, 'budgets'> {
  /**
   * Ids of settled holds that this balance has taken in, as with news: the caller has looked for all that the store
   * has.
   */
  releases: readonly string[];
  /** Every budget that was ever set for the tenant or one of its keys: there are no others. */
  budgets: readonly Budget[];
  /**
   * For budgets, as metering has it, for the calendar month that it is now; empty: not known, and what the store has of
   * it stays; what it has not is asked for, as after a loss.
   */
  spent: readonly MonthSpent[];
}

/** `droppedHolds`: what stood in their place could not be read. */
export interface RepairResult {
  droppedHolds: number;
}

export interface SweepOptions {
  /** At most so many holds of each kind. */
  limit: number;
  /** A settled hold that was not released for so long is handed out again. */
  confirmAfterMs: number;
}

/**
 * What the store knows of a tenant: spendable = balance − settled; available = spendable − pending. The balance is
 * without what is withdrawn and not yet in the news.
 */
export interface Snapshot {
  tenantId: string;
  version: bigint;
  balanceNanos: bigint;
  settledNanos: bigint;
  pendingNanos: bigint;
  pendingHolds: number;
  settledHolds: number;
  /** Sums over the hold rows themselves: must equal the running sums above. */
  holdRowsPendingNanos: bigint;
  holdRowsSettledNanos: bigint;
  /**
   * The least id among the settled holds, null for none: reconcile looks whether its charge was gathered long ago, and
   * the hold forgotten.
   */
  oldestSettledId: string | null;
  suspended: boolean;
  /** Running requests as they are counted: must equal `pendingHolds`. */
  inFlight: bigint;
  /** Of withdrawals for versions to come: balance + this is the balance of `version`. */
  withdrawnNanos: bigint;
  /** What stands there cannot be read, and why; then nothing else of this counts. */
  unreadable?: string;
}

/** One hold, for reconcile to name. */
export interface HoldView {
  id: string;
  state: 'pending' | 'settled';
  /** Held, or the cost that it was settled at. */
  nanos: bigint;
  /**
   * Milliseconds since its last sign of life by the store's clock, or since its request ended. Negative: an instant to
   * come.
   */
  quietMs: number;
}

export interface HoldsQuery {
  tenantId: string;
  /** Ids above this one. */
  after?: string;
  limit: number;
}

export const DEFAULT_LEASE_MS = 10_000;

/**
 * The admission store: limits, budgets, credit and holds, changed only by atomic operations. Two implementations pass
 * one conformance suite (`admission.suite.ts`): SQL functions for the standalone form, Redis Functions for the
 * distributed one. Every operation takes an array and answers in its order; callers use the batching `AdmissionClient`
 * beside it.
 *
 * The states of a hold and every transition between them: hold-states.ts. Any other is refused and counted, never
 * applied.
 */
export abstract class AdmissionStore {
  /** It asks the books for a tenant that it does not know, at that one's first request: not to know one is no loss. */
  readonly asksForTenants: boolean = false;
  /** For so long a hold lives after its admission, and after each sign of life. */
  readonly leaseMs: number = DEFAULT_LEASE_MS;
  /**
   * Whoever asks one of them through the client has an answer or an UnavailableError so long after it asked, with its
   * time in the queue.
   */
  readonly answersWithinMs: { admit: number; settle: number } = { admit: Infinity, settle: Infinity };

  /**
   * For each, all or nothing and in order: tenant active, requests, tokens, concurrency, budgets, credit. Safe to
   * repeat by id. Need not wait for the disk. A RangeError stands in the place of one that the caller must not send:
   * numbers out of range, or the id of another or an ended hold.
   */
  abstract admit(requests: readonly AdmitRequest[]): Promise<(AdmitResult | ItemFailure)[]>;
  /**
   * Whether any request of theirs would be admitted now: before a body is read. Takes nothing, and writes nothing. An
   * Error in the place of one as by `admit`.
   */
  abstract look(requests: readonly LookRequest[]): Promise<(LookResult | ItemFailure)[]>;
  /** An Error stands in the place of one that could not be asked: the part of the store that has its tenant is away. */
  abstract extend(requests: readonly ExtendRequest[]): Promise<(ExtendResult | UnavailableError)[]>;
  /**
   * False where there is no such pending hold: the request has lost it and must end. True also of one that the store
   * lost: what it was granted still stands. An Error stands in the place of one that could not be told: the part of the
   * store that has its tenant is away.
   */
  abstract progress(progress: readonly Progress[]): Promise<(boolean | UnavailableError)[]>;
  /**
   * Durable when it returns. Gives back the rest of the hold, the place, and the token limit's difference (those of one
   * call added up). For a cost above the hold a RangeError stands in its place and nothing of it is changed: the caller
   * caps the cost. The others of the call are settled.
   */
  abstract settle(settlements: readonly Settlement[]): Promise<(SettleResult | ItemFailure)[]>;
  /**
   * Nothing was delivered: credit, place and tokens are given back (not the request on the requests limit: it was
   * made). False where there is no such pending hold.
   */
  abstract void(holds: readonly { id: string; tenantId: string }[]): Promise<boolean[]>;
  /**
   * Settles or voids what has expired, and hands out the records of settled holds that were not confirmed in time (each
   * to one sweeper at a time): publish them again.
   */
  abstract sweep(options: SweepOptions): Promise<UsageEvent[]>;
  abstract applyBalanceUpdates(news: readonly ParsedBalanceUpdate[]): Promise<void>;
  /**
   * Takes an amount out of what is available, all or nothing, before the books are debited: what running requests hold
   * stays theirs, and what is withdrawn nobody is admitted on. It stays withdrawn until news of `version` or a newer
   * one comes, whether that has the debit inside (then nothing changes) or not (then it is available again). A repeat
   * for the same version takes the first one's place. One at a time: it is rare.
   */
  abstract withdraw(withdrawal: Withdrawal): Promise<WithdrawResult>;
  /**
   * Sets version, balance, suspension and budgets to what the books say, whatever version the store has, takes away
   * every withdrawal, and makes the running sums, of the tenant and of its keys, those of its holds. What cannot be
   * read is no obstacle. News of older versions that come later release their holds and change nothing else; those of
   * newer ones are applied as ever.
   */
  abstract repair(repair: Repair): Promise<RepairResult>;
  /**
   * Tenants ascending by id after `after`, at most `limit`; one instant. Reads all holds of these, and of nobody else.
   */
  abstract snapshot(options: { tenantId?: string; after?: string; limit: number }): Promise<Snapshot[]>;
  /** A tenant's holds, ascending by id. Reads all of them: for reconcile, not for a request. */
  abstract holds(query: HoldsQuery): Promise<HoldView[]>;
  /**
   * Rejects, within a bounded time and with the reason, while the store cannot write durably. Cheap to ask often: all
   * who ask within a second share one probe.
   */
  abstract check(): Promise<void>;
  abstract start(): Promise<void>;
  abstract close(): Promise<void>;
}
