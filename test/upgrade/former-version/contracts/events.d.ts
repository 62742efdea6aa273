// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
import type { PriceStamp, TokenCounts } from './money';
export type InferenceKind = 'chat' | 'completion' | 'embedding';
export type Outcome = 'complete' | 'client_closed' | 'upstream_error' | 'credit_ended' | 'expired';
export interface DefaultBudgets {
  tenantCents?: number;
  keyCents?: number;
}
export interface UsageDraft {
  id: string;
  tenantId: string;
  keyId: string;
  model: string;
  kind: InferenceKind;
  stream: boolean;
  price: PriceStamp;
  defaultBudgets?: DefaultBudgets;
  startedAt: string;
}
export interface UsageEvent extends UsageDraft, TokenCounts {
  costNanos: string;
  overrunNanos: string;
  estimated: boolean;
  outcome: Outcome;
  backend?: string;
  endedAt: string;
}
export interface Charge {
  id: string;
  tenantId: string;
  keyId: string;
  costNanos: string;
  overrunNanos?: string;
  endedAt: string;
  defaultBudgets?: DefaultBudgets;
}
export interface TenantUpdate {
  tenantId: string;
  version: number;
  status: 'active' | 'suspended';
}
export interface BalanceUpdate {
  tenantId: string;
  version: string;
  balanceNanos: string;
  releases: string[];
  suspended: boolean;
  budgets?: BudgetUpdate[];
}
export interface BudgetUpdate {
  keyId: string | null;
  version: string;
  budgetNanos: string;
}
export interface BudgetEvent {
  id: string;
  tenantId: string;
  keyId: string | null;
  period: string;
  thresholdPercent: number;
  budgetCents: number;
  spentNanos: string;
  at: string;
}
