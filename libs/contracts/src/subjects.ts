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

/**
 * Request–reply between the gateway and the services: one entry a subject, `[request, reply]`. Plain JSON (no bigint,
 * no Date). A handler refuses with a RequestError; its code is part of the subject's contract.
 */
export interface Subjects {
  /** not_found: unknown plan → invalid_plan; name taken is fine. */
  'auth.tenants.create': [{ name: string; plan?: string }, TenantRow];
  'auth.tenants.list': [PageQuery, Page<TenantRow>];
  /** not_found */
  'auth.tenants.get': [{ tenantId: string }, TenantRow];

  /**
   * not_found. The same status again succeeds. Running requests end as they would; new ones are refused from the answer
   * on, within a second of it at the latest. UnavailableError: it may not be in force yet, and may be committed; again.
   */
  'auth.tenants.setStatus': [{ tenantId: string; status: TenantRow['status'] }, TenantRow];

  'auth.keys.list': [{ tenantId: string } & PageQuery, Page<KeyRow>];
  /** not_found (tenant), invalid_profile. In force when it is answered, or as soon as the credential store is back. */
  'auth.keys.create': [
    { tenantId: string; name: string; hash: string; last4: string; profile?: string; expiresAt?: string },
    KeyRow,
  ];
  /** not_found: no such key of this tenant. */
  'auth.keys.get': [{ tenantId: string; id: string }, KeyDetails];
  /**
   * not_found. In force everywhere within a second of the answer. UnavailableError: it may not be in force yet, and may
   * be committed; again. Revoking again succeeds.
   */
  'auth.keys.revoke': [{ tenantId: string; id: string }, { revokedAt: string }];

  'auth.tokens.list': [{ tenantId: string } & PageQuery, Page<TokenRow>];
  /** not_found (tenant), invalid_scope. As auth.keys.create. */
  'auth.tokens.create': [
    { tenantId: string; name: string; hash: string; last4: string; scopes: string[]; expiresAt?: string },
    TokenRow,
  ];
  /** As auth.keys.revoke. */
  'auth.tokens.revoke': [{ tenantId: string; id: string }, { revokedAt: string }];
  /** Advances lastUsedAt, never back. */
  'auth.tokens.used': [{ uses: { id: string; at: string }[] }, { recorded: number }];

  'metering.usage.query': [UsageQuery, UsageSummary];
  /**
   * What was charged for requests that ended in `month` (`YYYY-MM`, UTC), in decimal strings of nanos: of the tenant,
   * and of its keys ascending by id after `after`, 5,000 a page; from the roll-ups. For an admission store that was
   * emptied. invalid_parameter: month.
   */
  'metering.spent': [
    { tenantId: string; month: string; after?: string },
    { tenantNanos: string; keys: { keyId: string; nanos: string }[]; nextCursor: string | null },
  ];
  /** What is recorded of at most 200 requests, in the order of the ids; unknown ones are left out. invalid_parameter */
  'metering.usage.events': [{ ids: string[] }, { data: RecordedEvent[] }];
  /** invalid_parameter: a limit above MAX_DIGEST_EVENTS. */
  'metering.events.digest': [EventRange, EventDigest];
  /** The events of a range, ascending by id. invalid_parameter: a limit above MAX_LISTED_EVENTS. */
  'metering.events.list': [EventRange, { data: EventLine[]; end: string | null }];
  /**
   * Compares the next part of the roll-ups with the events themselves; null at the end. invalid_parameter: `after` is
   * none of these cursors.
   */
  'metering.rollups.audit': [{ after?: string }, Found & { nextCursor: string | null }];
  /**
   * Usage events that were quarantined and not recorded since: what they are about may be served, and is in no books.
   */
  'metering.rejected.audit': [Record<string, never>, Found];
  /**
   * Work of backends that is not charged, as a gateway knows of it. A repeat of the same `id` counts nothing.
   * invalid_parameter: more than MAX_UNBILLED_LINES, or no such lines.
   */
  'metering.backends.unbilled': [{ id: string; work: UnbilledWork[] }, { recorded: true }];
  /**
   * The engines' counters beside the books, of the `hours` before now and the running one, newest first; `before` an
   * hour, for the next page. invalid_parameter: hours (1 to MAX_COMPARED_HOURS), before.
   */
  'metering.backends.compare': [{ hours: number; before?: string }, { data: BackendHour[]; nextCursor: string | null }];

  /** entries newest first. invalid_parameter: unknown `after`. */
  'billing.summary': [{ tenantId: string } & PageQuery, BillingSummary];
  /**
   * What admission would let the tenant spend now, decimal string; null while it cannot be asked or has not heard of
   * the tenant.
   */
  'billing.credit.spendable': [{ tenantId: string }, { spendableNanos: string | null }];
  /**
   * The news of the tenant's books as they are now; null when there are none. Without releases: what is settled in the
   * store has its own news on the way, and counts twice until then.
   */
  'billing.credit.news': [{ tenantId: string }, BalanceUpdate | null];
  /**
   * A top-up. ref_conflict: this source and ref were used with other input; invalid_amount; not_found (tenant). A
   * repeat returns the first answer.
   */
  'billing.credit.add': [
    { tenantId: string; amountCents: number; source: string; ref: string },
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * Money out, at most what is not spent, gathered or held by running requests. insufficient_credit; else as
   * billing.credit.add.
   */
  'billing.credit.refund': [
    { tenantId: string; amountCents: number; source: string; ref: string; reason?: string },
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * A correction by a person, signed. A negative one is limited as a refund is, unless `allowDebt`. Errors as
   * billing.credit.refund.
   */
  'billing.credit.adjust': [
    { tenantId: string; amountCents: number; source: string; ref: string; reason: string; allowDebt?: boolean },
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * Starts a run, which takes minutes over millions of events, and answers at once. reconcile_busy: too many run
   * already.
   */
  'billing.reconcile.start': [Record<string, never>, { id: string }];
  /** not_found: no such run, or long ago. */
  'billing.reconcile.get': [{ id: string }, ReconcileRun];
  /** Heads of the journals, ascending by tenant, after the tenant `after`. invalid_parameter. */
  'billing.journal.heads': [PageQuery, Page<JournalHead>];
  /**
   * Those of these heads, of any time, that are not in the journal any more. invalid_parameter: they are too many, or
   * no heads.
   */
  'billing.journal.compare': [{ heads: JournalHead[] }, { differences: Difference[] }];
  /**
   * Sets the monthly budget of a tenant (`keyId` null) or of a key. not_found (tenant, key), invalid_budget,
   * invalid_thresholds, too_many_budgets. `thresholdsPercent`: null for those of the configuration; absent: as they
   * are. In force when it is answered; UnavailableError: it may not be yet, and may be committed; again. The same again
   * changes nothing.
   */
  'billing.budget.set': [
    { tenantId: string; keyId: string | null; budgetCents: SetBudget; thresholdsPercent?: number[] | null },
    BudgetState,
  ];
  /** Never refused for a tenant or key that has none. */
  'billing.budget.get': [{ tenantId: string; keyId: string | null }, BudgetState];
  /** Of the tenant's keys, those with a budget of their own, ascending by key id. invalid_parameter. */
  'billing.budget.keys': [{ tenantId: string } & PageQuery, Page<BudgetState>];
  /**
   * The requests that a usage entry debits, in pages after the request `after`: their costs + carried in = amount +
   * carried out. not_found, invalid_parameter.
   */
  'billing.entry.requests': [
    { entryId: string; limit?: number; after?: string },
    {
      entry: LedgerEntry & { tenantId: string; period: string };
      carriedInNanos: string;
      carriedOutNanos: string;
      requests: ChargedRequest[];
      nextCursor: string | null;
    },
  ];
  /** Where a request went in the books. not_found: no charge of it has come. */
  'billing.request.entry': [
    { requestId: string },
    {
      charge: ChargedRequest & { tenantId: string; period: string };
      /** At the end of a month, with others too little for a cent: an entry of a later month has it inside. */
      carriedOn: boolean;
      /** Null: not posted yet, or carried on. */
      entry: LedgerEntry | null;
      /** Of its month; null while that is open. */
      invoice: { period: string; accountingNumber: number; status: 'paid' | 'void' } | null;
    },
  ];
  /**
   * The news of topic `tenant-news`, told ahead of it: the admission store has it when this is answered, also when it
   * was told before. invalid_parameter; UnavailableError: it does not take it now.
   */
  'billing.tenants.tell': [TenantUpdate, { told: true }];
  /**
   * Makes what the admission store has of a tenant anew from the books and from the tenant's holds, whatever version
   * stands there; `dryRun`: says what that would change. not_found; UnavailableError when the store does not answer.
   */
  'billing.tenants.repair': [{ tenantId: string; dryRun?: boolean }, TenantRepair];
  /** Invoices that were issued, newest number first; `after` is a number. invalid_parameter */
  'billing.invoices.list': [{ tenantId?: string; period?: string } & PageQuery, Page<IssuedInvoice>];
  /**
   * Closes a month that is over, and all before it, of one tenant or of all: numbers of invoices issued, of months
   * without a debit, and of months that stay open as the credit does not pay for them. A repeat closes what is left.
   * invalid_period
   */
  'billing.invoices.close': [
    { period: string; tenantId?: string },
    { invoices: number; empty: number; waiting: number },
  ];
  /**
   * Reverses an invoice: its amount goes back to the tenant's credit. A repeat returns the first answer. not_found,
   * invalid_parameter, ref_conflict, invalid_amount.
   */
  'billing.invoices.void': [
    { accountingNumber: number; reason: string },
    { invoice: IssuedInvoice; entry: LedgerEntry; balanceCents: number },
  ];
}

export type Subject = keyof Subjects;
export type RequestOf<S extends Subject> = Subjects[S][0];
export type ReplyOf<S extends Subject> = Subjects[S][1];
