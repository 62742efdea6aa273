import type {
  AuditAction,
  AuditRow,
  BillingSummary,
  BudgetState,
  CreditState,
  IssuedInvoice,
  KeyRow,
  LedgerEntry,
  ListedRequest,
  Page,
  PriceVersion,
  ReconcileRun,
  RecordedEvent,
  RefusalPoint,
  ReplyOf,
  ServedRequest,
  TenantRow,
  TokenRow,
  UsagePoint,
  UsageSeries,
} from '@tollgate/contracts';
import type { MemberRow } from '../access/members';
import type { InvitationRow } from '../access/invitations';
import type { Role, TenantAction, TenantRole } from '../access/roles';

// What the backend answers. The pages import these types, and nothing else of the backend.

export interface TenantOfPerson {
  id: string;
  name: string;
  status: TenantRow['status'];
  role: Role;
  /** What the person may do in the tenant. */
  actions: TenantAction[];
  /** The roles that the person may give, change and remove in the tenant. */
  grants: TenantRole[];
}

export interface Me {
  name: string;
  email: string;
  /** False: the person signs in only by the provider. */
  hasPassword: boolean;
  hasTotp: boolean;
  isOperator: boolean;
  tenants: TenantOfPerson[];
  /** Where programs call the APIs. */
  inferenceUrl: string;
  managementUrl: string;
  /** ISO 4217. */
  currency: string;
}

export interface SessionRow {
  id: string;
  isCurrent: boolean;
  address: string | null;
  browser: string | null;
  createdAt: string;
  expiresAt: string;
}

/** What an invitation gives, for the page that accepts it. */
export interface InvitationOffer {
  email: string | null;
  operator: boolean;
  tenantName: string | null;
  role: TenantRole | null;
}

export interface Overview {
  credit: CreditState;
  /** The last 30 days by day and model, and the 30 days before in one sum. */
  usage: Usage;
  before: UsageTotals;
  /** Errors of the same 30 days by code, the most frequent first. */
  refusals: Pick<RefusalPoint, 'code' | 'requests'>[];
}

export type UsageTotals = Omit<UsagePoint, 'at' | 'name'>;

/** Usage over time, and its sum. */
export interface Usage extends UsageSeries {
  totals: UsageTotals;
}

/** Usage of a chosen range. `keyNames`: the names, by id, of the keys that it is grouped or filtered by. */
export interface UsageOfRange extends Usage {
  keyNames: Record<string, string>;
}

/** A served request. `keyName` is null if nobody knows the key now. */
export type RequestRow = ListedRequest & { keyName: string | null };
export type RequestList = Page<RequestRow>;

/** A request, and where it is in the books. */
export interface RequestBooks {
  event: Omit<ServedRequest, 'backend' | 'life'>;
  /** Null: nobody knows the key now. */
  keyName: string | null;
  /** Null: its gateway died, or was of an earlier version. */
  life: {
    /** Decimal strings: what was held at its admission and at its end. */
    heldNanos: string;
    endNanos: string;
    /** How often the hold was extended. */
    extensions: number;
    /** For a stream: from its admission to its first output. */
    firstMs: number | null;
  } | null;
  /** Null: its charge has not arrived. */
  books: ReplyOf<'billing.request.entry'> | null;
  /** The price of its version; null if metering never saw it. */
  price: PriceVersion | null;
}

/** The budget of a key in the running month (UTC). */
export interface KeyBudgetState {
  budgetCents: number;
  /** Decimal string. */
  spentNanos: string;
  /** What running requests of the key may still cost, decimal string. Null: not known. */
  heldNanos: string | null;
}

export interface KeyRowWithBudget extends KeyRow {
  /** Null: it has none, or the person may not see budgets. */
  budget: KeyBudgetState | null;
}

export interface IssuedKey extends KeyRow {
  /** Only this answer has it. */
  key: string;
}

export interface IssuedToken extends TokenRow {
  /** Only this answer has it. */
  token: string;
}

export interface ModelRow {
  id: string;
  kind: 'chat' | 'embedding';
  ownedBy: string;
  contextTokens: number;
  maxOutputTokens: number;
  /** Decimal amounts per million tokens; `request`: each. */
  price: { input: string; cachedInput: string | null; output: string; request: string };
}

export interface ModelList {
  data: ModelRow[];
  /** A model of chats that a key without a chosen profile may use. Null: there is none. */
  firstChat: string | null;
}

export interface Plan {
  id: string;
  profiles: string[];
}

export interface MemberList extends Page<MemberRow> {
  /** All that are open, with each page of the members. */
  invitations: InvitationRow[];
  /** What a person may do in each role. */
  roles: { role: TenantRole; actions: TenantAction[] }[];
}

export interface InvitationCreated {
  /** Null: it was sent by mail. */
  link: string | null;
  expiresAt: string;
}

/** A row of money that was booked. */
export interface Booked {
  entry: LedgerEntry;
  balanceCents: number;
  /** False: this reference was booked before, and nothing was booked now. */
  created: boolean;
}

export interface CreditPreview {
  /** What the entry would be. */
  type: 'topup' | 'refund' | 'adjustment';
  amountCents: number;
  balanceBeforeCents: number;
  balanceAfterCents: number;
}

/** A monthly budget as it is in force. Null: none. */
export interface BudgetRow extends Omit<BudgetState, 'budgetCents'> {
  budgetCents: number | null;
  /** It is the budget of the configuration. */
  isDefault: boolean;
}

export interface BudgetList {
  tenant: BudgetRow;
  keys: Page<BudgetRow & { keyName: string | null }>;
}

/** An invoice, and the usage of its month by model. */
export interface InvoiceSheet {
  invoice: IssuedInvoice;
  tenantName: string;
  lines: UsagePoint[];
}

/** A ledger entry as a receipt. `requests`: those that an entry of usage debits, in pages. */
export interface Receipt extends Omit<ReplyOf<'billing.entry.requests'>, 'entry'> {
  /** Without the reason, which is for operators. */
  entry: Omit<ReplyOf<'billing.entry.requests'>['entry'], 'reason'>;
  tenantName: string;
}

/** What an operator decides in `tollgate.yaml`, as it is in force. */
export interface Configuration {
  currency: string;
  thresholdsPercent: number[];
  plans: {
    id: string;
    limits: Limits;
    monthlyBudgetCents: number | null;
    profiles: { id: string; models: string[]; limits: Limits; monthlyBudgetCents: number | null }[];
  }[];
  models: ModelRow[];
  /** Every price that was in force, newest first. */
  history: PriceVersion[];
  /** All of the file with its defaults. Secrets are blanked. */
  whole: Record<string, unknown>;
}

export interface Limits {
  requestsPerMinute: number;
  tokensPerMinute: number;
  concurrency: number;
}

/** An answer of the inference API to the playground. */
export interface Tried {
  status: number;
  requestId: string | null;
  seconds: number;
  /** Its body; null if it was not JSON. */
  answer: unknown;
}

export interface AuditList extends Page<AuditRow> {
  /** Every kind of change that the log can have, for the filter. */
  actions: readonly AuditAction[];
}

export type SessionList = Page<SessionRow>;
export type KeyList = Page<KeyRowWithBudget>;
export type TokenList = Page<TokenRow>;
export type {
  AuditRow,
  PriceVersion,
  ReconcileRun,
  BillingSummary,
  IssuedInvoice,
  KeyRow,
  LedgerEntry,
  MemberRow,
  TenantRow,
  TokenRow,
  RecordedEvent,
};
export type { InvitationRow, Role, TenantAction, TenantRole };
export type * from './operator/operator-answers';
export type * from './people/people-answers';
