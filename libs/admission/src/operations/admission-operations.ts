// The requests and results of the admission store's operations (admission-store.ts).
import type { TokenCounts, UsageDraft, UsageEvent } from '@tollgate/contracts';
import type { Claim, ClaimAnswer } from './claim-operations';

/** Two limits per minute, and one on requests that run at the same time. Whole numbers of at least 1. */
export interface Limits {
  requestsPerMinute: number;
  tokensPerMinute: number;
  concurrency: number;
}

/** One request to be admitted. Money in nanos, prices per token in femtos (contracts/money.ts). */
export interface AdmitRequest {
  /** The fixed part of the usage event. Its `id` is the hold's id, so a repeat is harmless. */
  draft: UsageDraft;
  tenantLimits: Limits;
  keyLimits: Limits;
  /**
   * Default budgets of the configuration for the calendar month (UTC). Null: none. A `Budget` of the operator overrides
   * them.
   */
  keyBudgetNanos: bigint | null;
  tenantBudgetNanos: bigint | null;
  /** Upper bound of the prompt's tokens. */
  promptTokens: number;
  /** The maximum cost of the prompt and the request price: bound × input price + request price, in femtos. */
  promptFemtos: bigint;
  outputFemtosPerToken: bigint;
  /** Output tokens for this hold to cover, over all choices: `n` × `max_tokens`, or `n` × slice. 0 for embeddings. */
  wantOutputTokens: number;
  /**
   * The minimum to grant when credit and budgets suffice but other requests' holds are in the way. Below it the result
   * is `credit_held`. 1 … wantOutputTokens (0 for embeddings).
   */
  minOutputTokens: number;
  /**
   * False: the prompt bound is the cheap one. The store then returns `bound` instead of clamping or refusing for money.
   * The caller counts exactly and calls again.
   */
  boundIsExact: boolean;
  /** Absent: the request has no Idempotency-Key. */
  claim?: Claim | undefined;
}

/** The state of the limits of a key or a tenant. */
export interface BucketState {
  requestsRemaining: number;
  /** Until the bucket is full again. */
  requestsResetMs: number;
  tokensRemaining: number;
  tokensResetMs: number;
}

/** The state of the key's limits and of its tenant's, for the `x-ratelimit-*` headers. */
export interface LimitState extends BucketState {
  tenant: BucketState;
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
  /** Count the prompt exactly and call again. Only when `boundIsExact` was false. */
  | 'bound'
  /** Another request has the claim: `recall` says in which state it is. Before any limit. */
  | 'claimed';

export type AdmitResult =
  /**
   * `storeEpoch` comes from a store that can lose holds while it runs. Pass it on with every later operation: it
   * distinguishes a hold that the store lost from one that ended.
   */
  | { kind: 'held'; holdNanos: bigint; outputTokens: number; limits: LimitState; storeEpoch?: string }
  /**
   * `scope`: the limit or budget of the key, or of the tenant. `retryAfterMs`: when the same request would be admitted;
   * null where waiting does not help.
   * For `requests` and `tokens` it is exact unless other requests come first. For `credit_held` and `concurrency` it
   * estimates the time from one end of a running request to the next: the mean length of the tenant's recent holds,
   * divided by the number of running requests in the scope, from 1 s to 60 s. Before any hold has ended it is 1 s.
   * `expectedEnds` says more.
   */
  | { kind: 'refused'; reason: Refusal; scope: 'key' | 'tenant'; retryAfterMs: number | null; limits: LimitState };

/** The limits and budgets of a request or a look. */
export type Limited = Pick<AdmitRequest, 'keyLimits' | 'tenantLimits' | 'keyBudgetNanos' | 'tenantBudgetNanos'>;

/** The key and the limits of a request whose body has not been read yet. */
export interface LookRequest {
  tenantId: string;
  keyId: string;
  tenantLimits: Limits;
  keyLimits: Limits;
  keyBudgetNanos: bigint | null;
  tenantBudgetNanos: bigint | null;
  /** False: the request may be for a free model, so neither credit nor a budget is checked. */
  isPaid: boolean;
}

/**
 * The answer that `admit` would give now to the smallest request: one output token for a nano. `clear` guarantees
 * nothing, because other requests may come first.
 */
export type LookResult = { kind: 'clear'; limits: LimitState } | LookRefusal;
export type LookRefusal = Extract<AdmitResult, { kind: 'refused' }> & { reason: Exclude<Refusal, 'bound' | 'claimed'> };

export interface ExtendRequest {
  id: string;
  tenantId: string;
  /**
   * The increase of the hold that the caller wants. The store grants min(wantNanos, available credit and budget), or
   * nothing if that is below minNanos.
   */
  wantNanos: bigint;
  minNanos: bigint;
  /** The value that `admit` returned. */
  storeEpoch?: string | undefined;
}

/**
 * `refused`: available credit or budget is below `minNanos`, or the store lost the hold. The hold stays as it
 * is. `forbidden`: no such pending hold (expired, settled, void).
 */
export type ExtendResult =
  { kind: 'extended'; grantedNanos: bigint; holdNanos: bigint } | { kind: 'refused' } | { kind: 'forbidden' };

/** What a stream has delivered so far. */
export interface DeliveredUsage extends TokenCounts {
  costNanos: bigint;
  /** Another model serves it than the one of the draft. An expired hold becomes an event with its name and price. */
  served?: Pick<UsageDraft, 'model' | 'price'> | undefined;
}

/** A heartbeat of a running request. It renews the hold's deadline and, for a stream, records what was delivered. */
export interface Progress {
  id: string;
  tenantId: string;
  /**
   * Null: nothing was delivered yet, or the answer is not streamed. Only the deadline moves, and an expiry voids the
   * hold.
   */
  delivered: DeliveredUsage | null;
  /** The value that `admit` returned. */
  storeEpoch?: string | undefined;
}

export interface Settlement {
  /** The whole usage event. It is the hold's record until the ledger confirms it. `event.costNanos` is the cost. */
  event: UsageEvent;
  /** The value that `admit` returned. */
  storeEpoch?: string | undefined;
  /** The answer to keep with the settlement of a request that was admitted with a claim. */
  answer?: ClaimAnswer | undefined;
}

/**
 * - `settled`: durable. `event` is the record in force. A repeat, and a settlement after expiry, return the first
 *   result with `repeated: true`.
 * - `lost`: the store was emptied after the admission, or lost the hold. Only the caller still has the event. It
 *   must publish it durably before the answer ends.
 * - `forbidden`: there is no such hold (never admitted, void, or released long ago). Counted like every forbidden
 *   transition (admission-metrics.ts).
 */
export type SettleResult =
  { kind: 'settled'; repeated: boolean; event: UsageEvent } | { kind: 'lost' } | { kind: 'forbidden' };

/** BalanceUpdate of the contracts, with amounts as bigint. */
export interface ParsedBalanceUpdate {
  tenantId: string;
  version: bigint;
  balanceNanos: bigint;
  releases: readonly string[];
  suspended: boolean;
  /** The budgets that changed. Each is applied only if it is newer than the store's. */
  budgets?: readonly Budget[];
}

/**
 * A budget that the operator set for a calendar month (UTC). It is in force for every admission and extension after it
 * was applied.
 */
export interface Budget {
  /** Null: the tenant's own budget, over all its keys. */
  keyId: string | null;
  /** Incremented by each change of this budget, from 1. */
  version: bigint;
  /** `none`: no budget, whatever the configuration says. `default`: the configuration's budget. */
  nanos: bigint | 'none' | 'default';
}

/** A debit that the books are about to make: a refund. */
export interface Withdrawal {
  tenantId: string;
  /**
   * The version of the books that includes the debit. The caller holds the lock of the tenant's books, so nobody else
   * creates this version meanwhile.
   */
  version: bigint;
  nanos: bigint;
}

/** `overtaken`: the store already has this version, so the books created it without this debit. */
export type WithdrawResult =
  { kind: 'withdrawn' } | { kind: 'refused'; availableNanos: bigint } | { kind: 'overtaken' };

/** Charges of a calendar month (UTC, `YYYY-MM`), by the time at which requests ended. */
export interface MonthSpent {
  month: string;
  tenantNanos: bigint;
  keys: readonly { keyId: string; nanos: bigint }[];
}

/**
 * A tenant's state in the books. The caller holds the lock of the tenant's books, so no newer version appears
 * meanwhile.
 */
export interface Repair extends Omit<ParsedBalanceUpdate, 'budgets'> {
  /**
   * Ids of settled holds that this balance includes, as in a balance update. The caller has checked every settled hold
   * of the store.
   */
  releases: readonly string[];
  /** Every budget that was ever set for the tenant or one of its keys. There are no others. */
  budgets: readonly Budget[];
  /**
   * Metering's sums for the current calendar month, for budgets. Empty: unknown. The store then keeps its sums, and
   * asks for those that it lacks, as after a loss.
   */
  spent: readonly MonthSpent[];
}

/** `droppedHolds`: entries that could not be read as holds, or not be ended. */
export interface RepairResult {
  droppedHolds: number;
}

export interface SweepOptions {
  /** The maximum number of holds of each kind. */
  limit: number;
  /** A settled hold is handed out again if it was not released within this time. */
  confirmAfterMs: number;
}

/**
 * The store's state of a tenant: spendable = balance − settled; available = spendable − pending. The balance
 * excludes withdrawals that no balance update includes yet.
 */
export interface Snapshot {
  tenantId: string;
  version: bigint;
  balanceNanos: bigint;
  settledNanos: bigint;
  pendingNanos: bigint;
  pendingHolds: number;
  settledHolds: number;
  /** Sums over the hold rows themselves. They must equal the running sums above. */
  holdRowsPendingNanos: bigint;
  holdRowsSettledNanos: bigint;
  /**
   * The lowest id among the settled holds. Null: none. Reconcile checks whether its charge was gathered long ago and
   * the hold was never released.
   */
  oldestSettledId: string | null;
  suspended: boolean;
  /** The counter of running requests. It must equal `pendingHolds`. */
  inFlight: bigint;
  /** Withdrawals for versions to come. The balance plus this is the balance of `version`. */
  withdrawnNanos: bigint;
  /** Why the stored state cannot be read. The other fields are then meaningless. */
  unreadable?: string;
}
