// What the operator API answers about a request and a key, and `tollgate explain` shows.
import type { RefusedBy, RefusedRequest } from './request-life';
import type { CreditState, KeyNames, KeyRow, ServedRequest, TenantRow } from './resources';
import type { ReplyOf } from './subjects';

type Books = ReplyOf<'billing.request.entry'>;

/** One request, from all stores. */
export interface ExplainedRequest {
  id: string;
  tenantId: string;
  /** `running`: it has a hold and no end yet. */
  state: 'running' | 'served' | 'refused';
  callerRequestId: string | null;
  /** What its key is called now. Null: unknown. */
  key: KeyNames | null;
  /** Null also of a served request whose usage event is no longer kept. */
  served: ServedRequest | null;
  /** The error that the answer of a charged request ended with. */
  refused: RefusedRequest | null;
  /** In the admission store, until the ledger has its cost. */
  hold: ReplyOf<'billing.request.hold'>['hold'];
  charge: Books['charge'] | null;
  carriedOn: boolean;
  entry: Books['entry'];
  invoice: Books['invoice'];
  monthClosed: boolean;
}

/** Something that stands in the way of every request of a key, or of every one that costs something. */
export interface Obstacle extends Omit<RefusedBy, 'what'> {
  what: RefusedBy['what'] | 'no_models';
}

/** A monthly budget in force, and what is spent of it. */
export interface BudgetInForce {
  monthlyBudgetCents: number | null;
  setBy: 'operator' | 'configuration';
  /** Decimal string. */
  spentNanos: string;
}

/** Limits in force, and what remains of them. The remainders are absent while the admission store does not answer. */
export interface LimitsNow {
  requestsPerMinute: number;
  tokensPerMinute: number;
  concurrency: number;
  requestsRemaining?: number;
  tokensRemaining?: number;
}

/** A key, and what stands in its way now. */
export interface ExplainedKey {
  key: KeyRow & { tenantId: string; revokedAt: string | null };
  tenant: TenantRow;
  /** Whether a small request would be admitted. Null: the admission store does not answer. */
  admitted: boolean | null;
  /** In the order in which a request meets them. */
  obstacles: Obstacle[];
  /** Ids of the models that it may use. */
  models: string[];
  /** Null: the configuration has no such plan or profile. */
  limits: { key: LimitsNow; tenant: LimitsNow } | null;
  budgets: { key: BudgetInForce; tenant: BudgetInForce };
  credit: CreditState;
  /** Its newest refused requests that are kept. */
  refused: RefusedRequest[];
  currency: string;
}
