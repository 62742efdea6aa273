// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
import type { BackendHour, UnbilledWork } from './backends';
import type { BalanceUpdate, TenantUpdate } from './events';
import type {
  Difference,
  EventDigest,
  EventLine,
  EventRange,
  Found,
  JournalHead,
  ReconcileRun,
  TenantRepair,
} from './reconcile';
import type {
  BillingSummary,
  BudgetState,
  ChargedRequest,
  IssuedInvoice,
  KeyDetails,
  KeyRow,
  LedgerEntry,
  Page,
  PageQuery,
  RecordedEvent,
  SetBudget,
  TenantRow,
  TokenRow,
  UsageQuery,
  UsageSummary,
} from './resources';
export interface Subjects {
  'auth.tenants.create': [
    {
      name: string;
      plan?: string;
    },
    TenantRow,
  ];
  'auth.tenants.list': [PageQuery, Page<TenantRow>];
  'auth.tenants.get': [
    {
      tenantId: string;
    },
    TenantRow,
  ];
  'auth.tenants.setStatus': [
    {
      tenantId: string;
      status: TenantRow['status'];
    },
    TenantRow,
  ];
  'auth.keys.list': [
    {
      tenantId: string;
    } & PageQuery,
    Page<KeyRow>,
  ];
  'auth.keys.create': [
    {
      tenantId: string;
      name: string;
      hash: string;
      last4: string;
      profile?: string;
      expiresAt?: string;
    },
    KeyRow,
  ];
  'auth.keys.get': [
    {
      tenantId: string;
      id: string;
    },
    KeyDetails,
  ];
  'auth.keys.revoke': [
    {
      tenantId: string;
      id: string;
    },
    {
      revokedAt: string;
    },
  ];
  'auth.tokens.list': [
    {
      tenantId: string;
    } & PageQuery,
    Page<TokenRow>,
  ];
  'auth.tokens.create': [
    {
      tenantId: string;
      name: string;
      hash: string;
      last4: string;
      scopes: string[];
      expiresAt?: string;
    },
    TokenRow,
  ];
  'auth.tokens.revoke': [
    {
      tenantId: string;
      id: string;
    },
    {
      revokedAt: string;
    },
  ];
  'auth.tokens.used': [
    {
      uses: {
        id: string;
        at: string;
      }[];
    },
    {
      recorded: number;
    },
  ];
  'metering.usage.query': [UsageQuery, UsageSummary];
  'metering.spent': [
    {
      tenantId: string;
      month: string;
      after?: string;
    },
    {
      tenantNanos: string;
      keys: {
        keyId: string;
        nanos: string;
      }[];
      nextCursor: string | null;
    },
  ];
  'metering.usage.events': [
    {
      ids: string[];
    },
    {
      data: RecordedEvent[];
    },
  ];
  'metering.events.digest': [EventRange, EventDigest];
  'metering.events.list': [
    EventRange,
    {
      data: EventLine[];
      end: string | null;
    },
  ];
  'metering.rollups.audit': [
    {
      after?: string;
    },
    Found & {
      nextCursor: string | null;
    },
  ];
  'metering.rejected.audit': [Record<string, never>, Found];
  'metering.backends.unbilled': [
    {
      id: string;
      work: UnbilledWork[];
    },
    {
      recorded: true;
    },
  ];
  'metering.backends.compare': [
    {
      hours: number;
      before?: string;
    },
    {
      data: BackendHour[];
      nextCursor: string | null;
    },
  ];
  'billing.summary': [
    {
      tenantId: string;
    } & PageQuery,
    BillingSummary,
  ];
  'billing.credit.spendable': [
    {
      tenantId: string;
    },
    {
      spendableNanos: string | null;
    },
  ];
  'billing.credit.news': [
    {
      tenantId: string;
    },
    BalanceUpdate | null,
  ];
  'billing.credit.add': [
    {
      tenantId: string;
      amountCents: number;
      source: string;
      ref: string;
    },
    {
      entry: LedgerEntry;
      balanceCents: number;
    },
  ];
  'billing.credit.refund': [
    {
      tenantId: string;
      amountCents: number;
      source: string;
      ref: string;
      reason?: string;
    },
    {
      entry: LedgerEntry;
      balanceCents: number;
    },
  ];
  'billing.credit.adjust': [
    {
      tenantId: string;
      amountCents: number;
      source: string;
      ref: string;
      reason: string;
      allowDebt?: boolean;
    },
    {
      entry: LedgerEntry;
      balanceCents: number;
    },
  ];
  'billing.reconcile.start': [
    Record<string, never>,
    {
      id: string;
    },
  ];
  'billing.reconcile.get': [
    {
      id: string;
    },
    ReconcileRun,
  ];
  'billing.journal.heads': [PageQuery, Page<JournalHead>];
  'billing.journal.compare': [
    {
      heads: JournalHead[];
    },
    {
      differences: Difference[];
    },
  ];
  'billing.budget.set': [
    {
      tenantId: string;
      keyId: string | null;
      budgetCents: SetBudget;
      thresholdsPercent?: number[] | null;
    },
    BudgetState,
  ];
  'billing.budget.get': [
    {
      tenantId: string;
      keyId: string | null;
    },
    BudgetState,
  ];
  'billing.budget.keys': [
    {
      tenantId: string;
    } & PageQuery,
    Page<BudgetState>,
  ];
  'billing.entry.requests': [
    {
      entryId: string;
      limit?: number;
      after?: string;
    },
    {
      entry: LedgerEntry & {
        tenantId: string;
        period: string;
      };
      carriedInNanos: string;
      carriedOutNanos: string;
      requests: ChargedRequest[];
      nextCursor: string | null;
    },
  ];
  'billing.request.entry': [
    {
      requestId: string;
    },
    {
      charge: ChargedRequest & {
        tenantId: string;
        period: string;
      };
      carriedOn: boolean;
      entry: LedgerEntry | null;
      invoice: {
        period: string;
        accountingNumber: number;
        status: 'paid' | 'void';
      } | null;
    },
  ];
  'billing.tenants.tell': [
    TenantUpdate,
    {
      told: true;
    },
  ];
  'billing.tenants.repair': [
    {
      tenantId: string;
      dryRun?: boolean;
    },
    TenantRepair,
  ];
  'billing.invoices.list': [
    {
      tenantId?: string;
      period?: string;
    } & PageQuery,
    Page<IssuedInvoice>,
  ];
  'billing.invoices.close': [
    {
      period: string;
      tenantId?: string;
    },
    {
      invoices: number;
      empty: number;
      waiting: number;
    },
  ];
  'billing.invoices.void': [
    {
      accountingNumber: number;
      reason: string;
    },
    {
      invoice: IssuedInvoice;
      entry: LedgerEntry;
      balanceCents: number;
    },
  ];
}
export type Subject = keyof Subjects;
export type RequestOf<S extends Subject> = Subjects[S][0];
export type ReplyOf<S extends Subject> = Subjects[S][1];
