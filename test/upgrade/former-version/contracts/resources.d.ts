// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
import type { InferenceKind, Outcome } from './events';
import type { TokenCounts } from './money';
export interface PageQuery {
  limit?: number;
  after?: string;
}
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}
export interface TenantRow {
  id: string;
  name: string;
  plan: string;
  status: 'active' | 'suspended';
  createdAt: string;
}
export interface KeyRow {
  id: string;
  name: string;
  last4: string;
  status: 'active' | 'revoked' | 'expired';
  createdAt: string;
  expiresAt: string | null;
}
export interface KeyDetails extends KeyRow {
  profile: string;
}
export type SetBudget = number | 'none' | 'default';
export interface BudgetState {
  keyId: string | null;
  budgetCents: SetBudget;
  thresholdsPercent: number[];
  hasOwnThresholds: boolean;
  period: string;
  spentNanos: string;
  events: {
    thresholdPercent: number;
    budgetCents: number;
    at: string;
  }[];
}
export declare const SCOPES: readonly ['keys:read', 'keys:write', 'usage:read', 'billing:read', 'tokens:read'];
export type Scope = (typeof SCOPES)[number];
export interface TokenRow {
  id: string;
  name: string;
  last4: string;
  scopes: string[];
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  revokedAt: string | null;
}
export type UsageGroup = 'model' | 'key' | 'day' | 'hour';
export interface UsageQuery {
  tenantId: string;
  from: string;
  to: string;
  groupBy: UsageGroup[];
  model?: string;
  keyId?: string;
}
export interface UsageNumbers {
  requests: number;
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  costCents: number;
  estimatedRequests?: number;
}
export type UsageGroupRow = UsageNumbers & Partial<Record<UsageGroup, string>>;
export interface UsageSummary {
  from: string;
  to: string;
  totals: UsageNumbers;
  groups: UsageGroupRow[];
}
export interface LedgerEntry {
  id: string;
  type: 'topup' | 'usage' | 'adjustment' | 'refund';
  amountCents: number;
  source: string;
  ref: string;
  reason?: string;
  createdAt: string;
}
export interface ChargedRequest {
  id: string;
  keyId: string;
  costNanos: string;
  endedAt: string;
}
export interface RecordedEvent extends ChargedRequest, TokenCounts {
  tenantId: string;
  model: string;
  kind: InferenceKind;
  stream: boolean;
  outcome: Outcome;
  estimated: boolean;
  overrunNanos: string;
  priceVersion: string;
  startedAt: string;
}
export interface Invoice {
  period: string;
  amountCents: number;
  status: 'open' | 'paid' | 'void';
  accountingNumber: number | null;
  createdAt: string;
}
export interface IssuedInvoice extends Invoice {
  tenantId: string;
  accountingNumber: number;
  status: 'paid' | 'void';
  voidedAt: string | null;
}
export interface BillingSummary {
  balanceCents: number;
  carriedNanos: string;
  entries: LedgerEntry[];
  nextCursor: string | null;
  invoices: Invoice[];
}
