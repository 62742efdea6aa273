import type { InferenceKind, Outcome } from './events';
import type { TokenCounts } from './money';
import type { RequestLife } from './request-life';

// The resources that requests and replies of the services consist of (subjects.ts).

export interface TenantRow {
  id: string;
  /** Not unique. */
  name: string;
  /** The operator's own id of the tenant, unique. Null: none. */
  externalId: string | null;
  plan: string;
  /** `closed` is final: nothing of the tenant runs again, and its books stay. */
  status: 'active' | 'suspended' | 'closed';
  createdAt: string;
  /** Null: not closed. */
  closedAt: string | null;
  /** When its personal data was erased. Null: it was not. */
  erasedAt: string | null;
}

export interface KeyRow {
  id: string;
  name: string;
  last4: string;
  status: 'active' | 'revoked' | 'expired';
  createdAt: string;
  /**
   * The end of its last request; while it is in use, about a minute late. Null: never used. Not shown by the management
   * API.
   */
  lastUsedAt: string | null;
  expiresAt: string | null;
  /** When its newest secret was created. Null: it has its first one. */
  rotatedAt: string | null;
  /** Until when a former secret may be accepted. Null: there is none. */
  formerUntil: string | null;
  /** A key profile of the tenant's plan. */
  profile: string;
  /** Who uses the key, in the tenant's own words. Null: not said. */
  owner: string | null;
  /** The tenant's own groups, in the order given; at most MAX_KEY_TAGS. */
  tags: string[];
  /** Ids of the only models of its profile that it may use; at most MAX_KEY_MODELS. Null: all of them. */
  models: string[] | null;
}

/** What a key and its tenant are called. */
export interface KeyNames {
  id: string;
  name: string;
  owner: string | null;
  tags: string[];
  tenantName: string;
  externalId: string | null;
}
export const MAX_KEY_NAMES = 1_000;
export const MAX_TENANT_NAMES = 200;

/** The ids of a plan and of its profiles. */
export interface PlannedProfiles {
  id: string;
  profiles: { id: string }[];
}

export const MAX_KEY_TAGS = 16;
/** The form of a tag, as a regular expression. */
export const KEY_TAG_FORM = '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$';
export const MAX_KEY_MODELS = 100;
/** The longest time in which a former secret of a key is accepted beside the next one: 30 days. */
export const MAX_ROTATION_GRACE_SECONDS = 2_592_000;
export const MAX_APPLIED_KEYS = 500;

/** A key as a list of keys describes it. An absent field stays as it is; in a new key it has its default. */
export interface WantedKey {
  /** Names the key: of the keys of the tenant that are not revoked, one at most may have it. */
  name: string;
  profile?: string;
  expiresAt?: string | null;
  owner?: string | null;
  tags?: string[];
  models?: string[] | null;
}

/** Whole cents. `none`: no budget, whatever the configuration says. `default`: the configuration's budget. */
export type SetBudget = number | 'none' | 'default';

/** A monthly budget in billing's books, and its use in this month (UTC). */
export interface BudgetState {
  keyId: string | null;
  budgetCents: SetBudget;
  /** The budget's own thresholds, or the thresholds of the configuration; ascending. */
  thresholdsPercent: number[];
  hasOwnThresholds: boolean;
  /** YYYY-MM */
  period: string;
  /** The cost of requests that ended in the month and have reached billing; decimal string. */
  spentNanos: string;
  /** The events of this month, oldest first. */
  events: { thresholdPercent: number; budgetCents: number; at: string }[];
}

export const SCOPES = ['keys:read', 'keys:write', 'usage:read', 'billing:read', 'tokens:read'] as const;
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

/** What an operator token may do, by area. `read` is every GET; no scope implies another. */
export const OPERATOR_SCOPES = ['read', 'tenants', 'keys', 'credit', 'books', 'backends', 'operators'] as const;
export type OperatorScope = (typeof OPERATOR_SCOPES)[number];

/** An operator token: it has the fields of a management token, and belongs to no tenant. */
export type OperatorTokenRow = TokenRow;

export interface LedgerEntry {
  id: string;
  type: 'topup' | 'usage' | 'adjustment' | 'refund';
  /** Signed: money in is positive, a debit negative. */
  amountCents: number;
  source: string;
  ref: string;
  /** The reason that a person gave for the entry, if any. Not shown by the management API. */
  reason?: string;
  createdAt: string;
}

/** One request in billing's books. */
export interface ChargedRequest {
  /** `req_…` */
  id: string;
  keyId: string;
  costNanos: string;
  endedAt: string;
}

/** One request in metering's records. */
export interface RecordedEvent extends ChargedRequest, TokenCounts {
  tenantId: string;
  model: string;
  kind: InferenceKind;
  stream: boolean;
  outcome: Outcome;
  estimated: boolean;
  /** A part of completionTokens. */
  reasoningTokens: number;
  overrunNanos: string;
  priceVersion: string;
  startedAt: string;
}

/** A request in a list of requests. */
export interface ListedRequest extends RecordedEvent {
  /** From its admission to its first output. Null: unknown, or no stream. */
  firstMs: number | null;
}

/** A served request in metering's records, with its life. */
export interface ServedRequest extends RecordedEvent {
  callerRequestId: string | null;
  /** Null: unknown. */
  backend: string | null;
  /** When metering recorded it; ISO 8601 UTC. */
  recordedAt: string;
  /** Null: its gateway died, or was of an earlier version. */
  life: RequestLife | null;
}

/** An entry with the balance after it. */
export interface StatementEntry extends LedgerEntry {
  balanceAfterCents: number;
  /** YYYY-MM, UTC: the month that the entry belongs to. */
  period: string;
}

/** What a tenant has, in amounts of the same moment as far as two stores can have one. */
export interface CreditState {
  /** In the ledger. */
  balanceCents: number;
  /** Usage that is gathered and not yet in the ledger, decimal string of nanos. */
  unpostedNanos: string;
  /** In the admission store; decimal strings of nanos. Null while it cannot be reached or does not know the tenant. */
  admission: {
    /** The cost of requests that ended, and that the books do not have yet. */
    settledNanos: string;
    /** Reserved by running requests. */
    heldNanos: string;
    runningRequests: number;
    /** What the tenant has left to spend: the balance less all usage. Running requests may still take their part. */
    spendableNanos: string;
    /** What a new request could hold now. */
    availableNanos: string;
  } | null;
}

export interface Invoice {
  /** YYYY-MM, UTC. */
  period: string;
  amountCents: number;
  /**
   * `open`: not closed and without a number. That is the running month, and a past month until it is closed. `paid`:
   * closed, and paid from credit.
   */
  status: 'open' | 'paid' | 'void';
  accountingNumber: number | null;
  createdAt: string;
}

/** An invoice with a number. */
export interface IssuedInvoice extends Invoice {
  tenantId: string;
  accountingNumber: number;
  status: 'paid' | 'void';
  voidedAt: string | null;
}

export interface BillingSummary {
  balanceCents: number;
  /** Usage that is gathered and not yet a whole cent in the ledger, decimal string of nanos. */
  carriedNanos: string;
  entries: LedgerEntry[];
  nextCursor: string | null;
  invoices: Invoice[];
}
