import type { PriceStamp, TokenCounts } from './money';

export type InferenceKind = 'chat' | 'completion' | 'embedding';

/**
 * How a request ended. `complete`: the answer went out whole. `client_closed`: the client left; what was delivered
 * until then is charged. `upstream_error`: the backend broke off after the first byte. `credit_ended`: an extension of
 * the hold was refused. `expired`: the gateway died, or outlived the hold's deadline; charged what was recorded last,
 * or had been delivered until then.
 */
export type Outcome = 'complete' | 'client_closed' | 'upstream_error' | 'credit_ended' | 'expired';

/**
 * Monthly budgets in whole cents that the configuration gives by default; a field that is absent: none. What the
 * operator set for tenant or key stands before them.
 */
export interface DefaultBudgets {
  tenantCents?: number;
  keyCents?: number;
}

/** What is known of a request when it is admitted: the part of its usage event that does not change. */
export interface UsageDraft {
  /** The request id (`req_…`): event id, hold id and charge id alike. */
  id: string;
  tenantId: string;
  keyId: string;
  /** Public model id. */
  model: string;
  kind: InferenceKind;
  stream: boolean;
  price: PriceStamp;
  /** As the configuration had them at admission; absent: none. For the thresholds of budgets, which billing watches. */
  defaultBudgets?: DefaultBudgets;
  /** ISO 8601 UTC, milliseconds. */
  startedAt: string;
}

/** One request that was served, as the gateway measured and settled it. Topic `usage-events`, keyed by tenant. */
export interface UsageEvent extends UsageDraft, TokenCounts {
  /** What the hold was settled at, decimal string: the rated cost, at most the hold. */
  costNanos: string;
  /** What the backend reported beyond the hold, decimal string: the operator's loss. "0" as a rule. */
  overrunNanos: string;
  /** True when tokens were counted by us, because the backend gave no usage, or none that can be true. */
  estimated: boolean;
  outcome: Outcome;
  /**
   * Name of the backend that served it: origin and base path of its URL, or "simulator:". Absent: not known, as of
   * `expired` ones.
   */
  backend?: string;
  /** ISO 8601 UTC, milliseconds: the month of this instant is the month of the debit. */
  endedAt: string;
}

/** A rated usage event: what billing collects. Topic `charges`, keyed by tenant. */
export interface Charge {
  /** The request id. */
  id: string;
  tenantId: string;
  keyId: string;
  costNanos: string;
  /** What was served beyond the hold and is not charged; absent: nothing. Billing books it as the operator's loss. */
  overrunNanos?: string;
  endedAt: string;
  /** Those of the usage event, empty where it has none; absent: not known, as the charge is sent again. */
  defaultBudgets?: DefaultBudgets;
}

/**
 * Whether a tenant may run requests, as auth has it. Topic `tenant-news`, keyed by tenant; only what is newer than the
 * last counts.
 */
export interface TenantUpdate {
  tenantId: string;
  /** Counts up with every change of the tenant's status. */
  version: number;
  status: 'active' | 'suspended';
}

/**
 * A tenant's credit as billing's books have it. Topic `credit-news`, keyed by tenant; applied in any order and any
 * number of times: the balance only if `version` is newer, the releases always.
 */
export interface BalanceUpdate {
  tenantId: string;
  /** Counts up with every change of the tenant's books. */
  version: string;
  /**
   * Whole cents of the ledger less what is gathered and not yet posted; decimal string. Negative after an adjustment,
   * or when more usage was gathered than the credit pays for (its holds were lost).
   */
  balanceNanos: string;
  /** Ids of the settled holds that this balance has taken in. */
  releases: string[];
  suspended: boolean;
  /** Budgets that were set since; each applied only if its own version is newer. */
  budgets?: BudgetUpdate[];
}

/** A monthly budget (UTC) that the operator set. */
export interface BudgetUpdate {
  /** Null: the tenant's own, over all its keys. */
  keyId: string | null;
  /** Counts up with each change of this budget, from 1; decimal string. */
  version: string;
  /**
   * A decimal string of nanos; `none`: no budget, whatever the configuration says; `default`: what the configuration
   * says.
   */
  budgetNanos: string;
}

/**
 * A budget of the month was used up to a threshold. Topic `budget-events`, keyed by tenant. Once for each threshold in
 * a month, whatever the budget is changed to.
 */
export interface BudgetEvent {
  /** `evt_…`: the same event again has the same id. */
  id: string;
  tenantId: string;
  /** Null: the tenant's own budget. */
  keyId: string | null;
  /** YYYY-MM, UTC. */
  period: string;
  thresholdPercent: number;
  /** Of the budget. */
  budgetCents: number;
  /** By requests that ended in the month and have reached billing; decimal string. */
  spentNanos: string;
  /** When it was recorded; ISO 8601 UTC, milliseconds. */
  at: string;
}
