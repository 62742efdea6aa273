import type {
  CreditState,
  KeyNames,
  KeyRow,
  RefusedBy,
  RefusedRequest,
  ReplyOf,
  ServedRequest,
  TenantRow,
} from '@tollgate/contracts';

// What the operator API answers about requests and keys.

type Books = ReplyOf<'billing.request.entry'>;

export interface ExplainedRequest {
  id: string;
  tenantId: string;
  state: 'running' | 'served' | 'refused';
  callerRequestId: string | null;
  key: KeyNames | null;
  served: ServedRequest | null;
  refused: RefusedRequest | null;
  hold: ReplyOf<'billing.request.hold'>['hold'];
  charge: Books['charge'] | null;
  carriedOn: boolean;
  entry: Books['entry'];
  invoice: Books['invoice'];
}

export type Obstacle = Omit<RefusedBy, 'what'> & { what: RefusedBy['what'] | 'no_models' };

interface LimitsNow {
  requestsPerMinute: number;
  tokensPerMinute: number;
  concurrency: number;
  requestsRemaining?: number;
  tokensRemaining?: number;
}

interface BudgetNow {
  monthlyBudgetCents: number | null;
  setBy: string;
  spentNanos: string;
}

export interface ExplainedKey {
  key: KeyRow & { tenantId: string; revokedAt: string | null };
  tenant: TenantRow;
  admitted: boolean | null;
  obstacles: Obstacle[];
  models: string[];
  limits: { key: LimitsNow; tenant: LimitsNow } | null;
  budgets: { key: BudgetNow; tenant: BudgetNow };
  credit: CreditState;
  refused: RefusedRequest[];
  currency: string;
}
