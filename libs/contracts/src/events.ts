import type { PriceStamp, TokenCounts } from './money';
import type { RequestLife } from './request-life';

export type InferenceKind = 'chat' | 'completion' | 'embedding';

/**
 * How a request ended.
 * - `complete`: the whole answer was sent.
 * - `client_closed`: the client left. The output delivered until then is charged.
 * - `upstream_error`: the backend broke off after the first byte.
 * - `credit_ended`: an extension of the hold was refused.
 * - `expired`: the gateway died, or outlived the hold's deadline. What was last recorded, or was delivered until then,
 *   is charged.
 */
export type Outcome = 'complete' | 'client_closed' | 'upstream_error' | 'credit_ended' | 'expired';

/**
 * Default monthly budgets of the configuration in whole cents. An absent field means none. A budget of the operator for
 * the tenant or key overrides its default.
 */
export interface DefaultBudgets {
  tenantCents?: number;
  keyCents?: number;
}

/** What is known of a request when it is admitted: the fixed part of its usage event. */
export interface UsageDraft {
  /** The request id (`req_…`). It is also the id of the event, the hold and the charge. */
  id: string;
  tenantId: string;
  keyId: string;
  /** Public model id. */
  model: string;
  kind: InferenceKind;
  stream: boolean;
  /** The `x-request-id` that the caller chose, `[A-Za-z0-9_-]{1,64}`, not unique. Absent: it chose none. */
  callerRequestId?: string;
  price: PriceStamp;
  /** The default budgets at admission; absent: none. Billing compares spending with their thresholds. */
  defaultBudgets?: DefaultBudgets;
  /** ISO 8601 UTC, milliseconds. */
  startedAt: string;
}

/** One served request, as the gateway measured and settled it. Topic `usage-events`, keyed by tenant. */
export interface UsageEvent extends UsageDraft, TokenCounts {
  /** The settled cost, decimal string: the rated cost, at most the hold. */
  costNanos: string;
  /** The cost that the backend reported beyond the hold, decimal string: the operator's loss. Usually "0". */
  overrunNanos: string;
  /** A part of completionTokens, as the backend reports it. Absent: none, or unknown. It has no price of its own. */
  reasoningTokens?: number;
  /** True: the gateway counted the tokens, because the backend reported no usage, or an impossible one. */
  estimated: boolean;
  outcome: Outcome;
  /**
   * The backend that served it: origin and base path of its URL, or "simulator:". Absent if unknown, as for `expired`
   * events.
   */
  backend?: string;
  /** How it ran, for an explanation; nothing is charged or limited by it. Absent: its gateway could not tell. */
  life?: RequestLife;
  /** ISO 8601 UTC, milliseconds. The month of this time is the month of the debit. */
  endedAt: string;
  /** The W3C trace context of a request whose trace is kept. It is not recorded, and a repeat lacks it. */
  traceparent?: string;
}

/** A rated usage event, for billing to collect. Topic `charges`, keyed by tenant. */
export interface Charge {
  /** The request id. */
  id: string;
  tenantId: string;
  keyId: string;
  costNanos: string;
  /** The cost beyond the hold, which is not charged; absent: none. Billing books it as the operator's loss. */
  overrunNanos?: string;
  endedAt: string;
  /**
   * The default budgets of the usage event, empty if it has none. Absent: unknown, because the charge is sent again.
   */
  defaultBudgets?: DefaultBudgets;
  /** As in the usage event. */
  traceparent?: string;
  /**
   * Its event belongs to a month that metering has retired, and is not recorded there. If billing has this charge, only
   * its hold is released. Otherwise it is quarantined.
   */
  late?: true;
  /**
   * A person has dismissed its event, which was quarantined, and it is not recorded. Only its hold is released, and
   * nothing is charged. Of the other fields, only the ids of the request and the tenant count. It is also `late`, so
   * that a billing that does not know this field quarantines it.
   */
  dismissed?: true;
}

/**
 * Whether a tenant may run requests, from auth. Topic `tenant-news`, keyed by tenant. Only a message newer than the
 * last one counts.
 */
export interface TenantUpdate {
  tenantId: string;
  /** Incremented by every change of the tenant's status. */
  version: number;
  status: 'active' | 'suspended';
}

/**
 * A tenant's credit in billing's books. Topic `credit-news`, keyed by tenant. Order and repeats do not matter: the
 * balance is applied only if `version` is newer, and the releases always.
 */
export interface BalanceUpdate {
  tenantId: string;
  /** Incremented by every change of the tenant's books. */
  version: string;
  /**
   * Whole cents of the ledger less what is gathered and not yet posted; decimal string. Negative after an adjustment,
   * or when more usage was gathered than the credit pays for (its holds were lost).
   */
  balanceNanos: string;
  /** Ids of the settled holds whose cost this balance includes. */
  releases: string[];
  suspended: boolean;
  /** Budgets that were set since. Each is applied only if its own version is newer. */
  budgets?: BudgetUpdate[];
}

/** A monthly budget (UTC) of the operator. */
export interface BudgetUpdate {
  /** Null: the tenant's own budget, over all its keys. */
  keyId: string | null;
  /** Incremented by each change of this budget, from 1; decimal string. */
  version: string;
  /**
   * A decimal string of nanos. `none`: no budget, whatever the configuration says. `default`: the configuration's
   * budget.
   */
  budgetNanos: string;
}

/**
 * Spending reached a threshold of a monthly budget. Topic `budget-events`, keyed by tenant. Spending fires
 * each threshold once a month, even if the budget changes. A change of the budget fires those that it crosses.
 */
export interface BudgetEvent {
  /** `evt_…`. A repeat of the event has the same id. */
  id: string;
  tenantId: string;
  /** Null: the tenant's own budget. */
  keyId: string | null;
  /** YYYY-MM, UTC. */
  period: string;
  thresholdPercent: number;
  /** The amount of the budget. */
  budgetCents: number;
  /** The cost of requests that ended in the month and have reached billing; decimal string. */
  spentNanos: string;
  /** The time of recording; ISO 8601 UTC, milliseconds. */
  at: string;
}
