import type { AuditQuery, AuditRow, Authored, ConsoleAction } from './audit';
import type { BackendHour, DrainedBackend, UnbilledWork } from './backends';
import type { BackendReport, BillingFleet, MeteringFleet, PriceVersion } from './fleet';
import type { BalanceUpdate, TenantUpdate } from './events';
import type { RefusedRequest } from './request-life';
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
  CreditState,
  EntriesQuery,
  IssuedInvoice,
  KeyNames,
  KeyRow,
  PlannedProfiles,
  LedgerEntry,
  OperatorTokenRow,
  Page,
  PageQuery,
  RecordedEvent,
  ServedRequest,
  SetBudget,
  StatementEntry,
  TenantRow,
  TokenRow,
  UsageQuery,
  UsageSummary,
  WantedKey,
} from './resources';
import type {
  ExportedUsage,
  RefusalCount,
  RefusalPoint,
  RequestsQuery,
  UsageSeries,
  UsageExportQuery,
  UsageSeriesQuery,
  UsageStep,
} from './usage';

/**
 * Request–reply between services: one entry for each subject, `[request, reply]`. Plain JSON (no
 * bigint, no Date). A handler refuses with a RequestError, whose code is part of the subject's contract.
 */
export interface Subjects {
  /** invalid_plan: the plan is unknown; external_id_taken. Names need not be unique. */
  'auth.tenants.create': [Authored<{ name: string; plan?: string; externalId?: string }>, TenantRow];
  /**
   * `externalId`: only the tenant with it, as a page of one row or none. `search`: only tenants whose name, id or
   * external id contains it, whatever the case of its letters from A to Z.
   */
  'auth.tenants.list': [{ externalId?: string; search?: string } & PageQuery, Page<TenantRow>];
  /** not_found */
  'auth.tenants.get': [{ tenantId: string }, TenantRow];

  /**
   * Changes the given fields. `profiles` names a profile of the new plan for profiles of the keys that it lacks.
   * not_found, tenant_closed, external_id_taken, invalid_plan, invalid_profile, profiles_missing. A new plan is in force
   * everywhere within a second of the answer. UnavailableError: the change may be committed but not in force, so repeat
   * it.
   */
  'auth.tenants.update': [
    Authored<{
      tenantId: string;
      name?: string;
      externalId?: string | null;
      plan?: string;
      profiles?: Record<string, string>;
    }>,
    TenantRow,
  ];

  /**
   * not_found, tenant_closed. Setting the same status again succeeds. Running requests end normally. New ones are
   * refused within a second of the answer. UnavailableError: the change may be committed but not in force, so repeat it.
   */
  'auth.tenants.setStatus': [Authored<{ tenantId: string; status: 'active' | 'suspended' }>, TenantRow];
  /**
   * Closes a tenant for good: suspends it, and revokes all its keys and tokens. not_found. In force and repeatable like
   * auth.tenants.setStatus.
   */
  'auth.tenants.close': [Authored<{ tenantId: string }>, TenantRow];
  /**
   * Erases the personal data of a closed tenant: names, owners, tags and the external id, also in the audit log. Ids and
   * books stay. not_found, tenant_not_closed. A repeat succeeds.
   */
  'auth.tenants.erase': [Authored<{ tenantId: string }>, TenantRow];

  'auth.keys.list': [{ tenantId: string } & PageQuery, Page<KeyRow>];
  /**
   * not_found (tenant), tenant_closed, invalid_profile, invalid_models. In force when answered, or once the credential
   * store is back.
   */
  'auth.keys.create': [
    Authored<{
      tenantId: string;
      name: string;
      hash: string;
      last4: string;
      profile?: string;
      expiresAt?: string;
      owner?: string;
      tags?: string[];
      models?: string[] | null;
    }>,
    KeyRow,
  ];
  /** not_found: no such key of this tenant. */
  'auth.keys.get': [{ tenantId: string; id: string }, KeyRow];
  /** A key of any tenant, for an operator. `revokedAt`: as far as gateways know. not_found */
  'auth.keys.find': [{ id: string }, KeyRow & { tenantId: string; revokedAt: string | null }];
  /**
   * What keys and their tenants are called, for at most 1,000 ids of any tenants. Unknown ones are left out.
   * invalid_parameter
   */
  'auth.keys.names': [{ ids: string[] }, { data: KeyNames[] }];
  /**
   * Changes the given fields of a key; null for no owner, no expiry and all models. not_found, invalid_profile,
   * invalid_models. In force everywhere within a second of the answer. UnavailableError: the change may be committed
   * but not in force, so repeat it.
   */
  'auth.keys.update': [
    Authored<{
      tenantId: string;
      id: string;
      name?: string;
      profile?: string;
      expiresAt?: string | null;
      owner?: string | null;
      tags?: string[];
      models?: string[] | null;
    }>,
    KeyRow,
  ];
  /**
   * Gives a key its next secret. Former ones are accepted for `graceSeconds`, from 0 to MAX_ROTATION_GRACE_SECONDS.
   * not_found, tenant_closed, key_revoked, invalid_grace. In force when it is answered. UnavailableError: it may be
   * committed, so rotate again with another secret.
   */
  'auth.keys.rotate': [
    Authored<{ tenantId: string; id: string; hash: string; last4: string; graceSeconds: number }>,
    KeyRow,
  ];
  /**
   * Makes the keys of a tenant those of a list, all or none: creates and changes those that it names, and revokes others
   * with `revokeOthers`. `secrets`: one for each key of the list, in its order; those of new keys are used. Absent: only
   * says what it would do, and new keys have no id. not_found, tenant_closed, invalid_profile, invalid_models,
   * invalid_parameter (more than MAX_APPLIED_KEYS, a name twice), ambiguous_name. `inForce` false: committed, and in force later; a repeat says
   * when.
   */
  'auth.keys.apply': [
    Authored<{
      tenantId: string;
      keys: WantedKey[];
      revokeOthers: boolean;
      secrets?: { hash: string; last4: string }[];
    }>,
    {
      created: (Omit<KeyRow, 'id'> & { id: string | null })[];
      updated: { row: KeyRow; fields: string[] }[];
      revoked: { id: string; name: string }[];
      unchanged: number;
      inForce: boolean;
    },
  ];
  /**
   * not_found. In force everywhere within a second of the answer. UnavailableError: the change may be committed but not
   * in force, so repeat it. Revoking again succeeds.
   */
  'auth.keys.revoke': [Authored<{ tenantId: string; id: string }>, { revokedAt: string }];
  /**
   * Moves lastUsedAt forward, never back. `recorded`: how many of the ids are keys. A gateway sends the use of a key at
   * most once a minute.
   */
  'auth.keys.used': [{ uses: { id: string; at: string }[] }, { recorded: number }];

  'auth.tokens.list': [{ tenantId: string } & PageQuery, Page<TokenRow>];
  /** not_found (tenant), tenant_closed, invalid_scope. Otherwise like auth.keys.create. */
  'auth.tokens.create': [
    Authored<{ tenantId: string; name: string; hash: string; last4: string; scopes: string[]; expiresAt?: string }>,
    TokenRow,
  ];
  /** Like auth.keys.revoke. */
  'auth.tokens.revoke': [Authored<{ tenantId: string; id: string }>, { revokedAt: string }];
  /** Moves lastUsedAt forward, never back. */
  'auth.tokens.used': [{ uses: { id: string; at: string }[] }, { recorded: number }];

  /** Operator tokens, newest first. */
  'auth.operators.list': [PageQuery, Page<OperatorTokenRow>];
  /** invalid_scope; name_taken: a token that is not revoked has this name. In force when it is answered. */
  'auth.operators.create': [
    Authored<{ name: string; hash: string; last4: string; scopes: string[]; expiresAt?: string }>,
    OperatorTokenRow,
  ];
  /** not_found. In force when it is answered. Revoking again succeeds. */
  'auth.operators.revoke': [Authored<{ id: string }>, { revokedAt: string }];
  /**
   * Finds the token that a caller of the operator API sent, and moves its lastUsedAt forward. invalid_secret: there is
   * none with this hash; token_revoked; token_expired.
   */
  'auth.operators.use': [{ hash: string }, { id: string; name: string; scopes: string[] }];

  /** A line for each profile that active keys have and these plans lack. */
  'auth.config.check': [{ plans: PlannedProfiles[] }, { problems: string[] }];

  /** The backends that get no new calls. */
  'auth.backends.drained': [Record<string, never>, { drained: DrainedBackend[] }];
  /** In force about a second after its answer. A repeat changes nothing. invalid_backend */
  'auth.backends.drain': [Authored<{ backend: string }>, DrainedBackend];
  /** The same. */
  'auth.backends.enable': [Authored<{ backend: string }>, { backend: string }];

  /** The changes that auth made, newest first. `after` is any `aud_…`. invalid_parameter */
  'auth.audit.list': [AuditQuery, Page<AuditRow>];
  /**
   * Appends a change that the console is about to make. Answered when the row is committed, so no change of the console
   * is missing in the log. A row may be there of a change that then failed. invalid_parameter: not one of
   * CONSOLE_ACTIONS.
   */
  'auth.audit.record': [
    Authored<{ action: ConsoleAction; target: string; tenantId?: string; after: Record<string, unknown> }>,
    { recorded: true },
  ];

  'metering.usage.query': [UsageQuery, UsageSummary];
  /**
   * What was charged for requests that ended in `month` (`YYYY-MM`, UTC), in decimal strings of nanos: of the tenant,
   * and of its keys ascending by id after `after`, 5,000 in a page. From the rollups. For an admission store that was
   * emptied. invalid_parameter: month.
   */
  'metering.spent': [
    { tenantId: string; month: string; after?: string },
    { tenantNanos: string; keys: { keyId: string; nanos: string }[]; nextCursor: string | null },
  ];
  /** The records of at most 200 requests, in the order of the ids. Unknown ones are left out. invalid_parameter */
  'metering.usage.events': [{ ids: string[] }, { data: RecordedEvent[] }];
  /** The newest 100 requests for which callers chose this `x-request-id`, newest first. invalid_parameter */
  'metering.requests.named': [{ callerRequestId: string }, { data: RecordedEvent[] }];
  /**
   * The served requests of a tenant, newest end first. A page may be short, even empty, while `nextCursor` is not null:
   * a search among many requests then goes on in the next page. invalid_parameter: limit, after, from, to, a filter.
   */
  'metering.requests.list': [RequestsQuery, Page<RecordedEvent>];
  /**
   * Usage over time, for a chart. One snapshot, so parts add up. invalid_parameter: a time, step, by or top; a range
   * longer than MAX_SERIES_DAYS; more than MAX_SERIES_POINTS points.
   */
  'metering.usage.series': [UsageSeriesQuery, UsageSeries];
  /**
   * What a gateway process refused, by hour: always the whole count so far, so repeats and late reports change nothing.
   * `source` names the process. `refused`: some of the requests, for explanations; a repeat changes nothing, and those
   * beyond MAX_REFUSED_PER_MINUTE are dropped. invalid_parameter: more than MAX_REFUSAL_COUNTS or
   * MAX_REFUSED_IN_REPORT, or a malformed one.
   */
  'metering.refusals.report': [
    { source: string; counts: RefusalCount[]; refused?: RefusedRequest[] },
    { recorded: true },
  ];
  /**
   * Refused requests of a tenant by code, ascending by time and code; the range as in metering.usage.series. Those of
   * the last seconds are on their way. invalid_parameter
   */
  'metering.refusals.series': [
    { tenantId: string; from: string; to: string; step: UsageStep; keyId?: string },
    { from: string; to: string; points: RefusalPoint[] },
  ];
  /**
   * The lives of requests by our id, or by the `x-request-id` that callers chose: the newest MAX_EXPLAINED served, and
   * as many refused ones of the last REFUSED_KEPT_DAYS. Of one tenant, if given. invalid_parameter
   */
  'metering.requests.explain': [
    { name: string; tenantId?: string },
    { served: ServedRequest[]; refused: RefusedRequest[] },
  ];
  /** The newest MAX_EXPLAINED refused requests of a key that are kept. invalid_parameter */
  'metering.refusals.newest': [{ keyId: string }, { refused: RefusedRequest[] }];
  /** A page of usage for another system. invalid_parameter: a time, step, after, a filter, or limit. */
  'metering.usage.export': [UsageExportQuery, { data: ExportedUsage[]; nextCursor: string | null }];
  /** invalid_parameter: a limit above MAX_DIGEST_EVENTS. */
  'metering.events.digest': [EventRange, EventDigest];
  /** The events of a range, ascending by id. invalid_parameter: a limit above MAX_LISTED_EVENTS. */
  'metering.events.list': [EventRange, { data: EventLine[]; end: string | null }];
  /**
   * Compares the next part of the rollups with the events themselves. Null at the end. invalid_parameter: `after` is
   * not one of these cursors.
   */
  'metering.rollups.audit': [{ after?: string }, Found & { nextCursor: string | null }];
  /**
   * Quarantined usage events that were not recorded later. Their requests may have been served, and are in no books.
   */
  'metering.rejected.audit': [Record<string, never>, Found];
  /**
   * Uncharged work of backends that a gateway knows of. A repeat of the same `id` counts nothing. invalid_parameter:
   * more than MAX_UNBILLED_LINES, or malformed lines.
   */
  'metering.backends.unbilled': [{ id: string; work: UnbilledWork[] }, { recorded: true }];
  /**
   * The engines' counters beside the books, for the running hour and the last `hours`, newest first. `before`: an hour,
   * for the next page. invalid_parameter: hours (1 to MAX_COMPARED_HOURS), before.
   */
  'metering.backends.compare': [{ hours: number; before?: string }, { data: BackendHour[]; nextCursor: string | null }];

  /** A line if the books have entries in another currency. */
  'billing.config.check': [{ currency: string }, { problems: string[] }];

  /**
   * How a gateway process sees its backends now. `source` names the process. invalid_parameter: more than
   * MAX_REPORTED_BACKENDS, or malformed states.
   */
  'metering.backends.report': [{ source: string; backends: BackendReport[] }, { recorded: true }];
  /** Usage of all tenants, and what waits. */
  'metering.fleet': [Record<string, never>, MeteringFleet];
  /** Every price that was in force while metering ran, newest first. */
  'metering.prices.list': [Record<string, never>, { data: PriceVersion[] }];

  /** Entries newest first. invalid_parameter: unknown `after`. */
  'billing.summary': [{ tenantId: string } & PageQuery, BillingSummary];
  /**
   * What the tenant can spend now according to the admission store, decimal string. Null while the store cannot be
   * reached or does not know the tenant.
   */
  'billing.credit.spendable': [{ tenantId: string }, { spendableNanos: string | null }];
  /** Balance, held and spendable amounts. A tenant without books has zero. */
  'billing.credit.state': [{ tenantId: string }, CreditState];
  /** Of at most 200 tenants: the balance, and what the ledger debited this month (UTC). invalid_parameter */
  'billing.tenants.balances': [
    { ids: string[] },
    { data: { tenantId: string; balanceCents: number; debitedCents: number }[] },
  ];
  /** Credit of all tenants, and what waits. */
  'billing.fleet': [Record<string, never>, BillingFleet];
  /** The ledger of a tenant with the running balance. `after`: an entry's id. invalid_parameter */
  'billing.entries.list': [EntriesQuery, Page<StatementEntry>];
  /**
   * The balance update of the tenant's books as they are now; null if there are none. It has no releases: settled holds
   * in the store have their own updates on the way, and count twice until then.
   */
  'billing.credit.news': [{ tenantId: string }, BalanceUpdate | null];
  /**
   * A top-up. ref_conflict: this source and ref were used with other input; invalid_amount; not_found (tenant). A
   * repeat returns the first answer.
   */
  'billing.credit.add': [
    Authored<{ tenantId: string; amountCents: number; source: string; ref: string }>,
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * A refund, of at most what is not spent, gathered or held by running requests. `all`: that much. insufficient_credit;
   * otherwise like billing.credit.add.
   */
  'billing.credit.refund': [
    Authored<{ tenantId: string; amountCents: number | 'all'; source: string; ref: string; reason?: string }>,
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * A correction by a person, signed. A negative one is limited like a refund, unless `allowDebt`. `all` writes the
   * credit off as far as a refund could take it, or a debt. Errors like billing.credit.refund.
   */
  'billing.credit.adjust': [
    Authored<{
      tenantId: string;
      amountCents: number | 'all';
      source: string;
      ref: string;
      reason: string;
      allowDebt?: boolean;
    }>,
    { entry: LedgerEntry; balanceCents: number },
  ];
  /**
   * Starts a run, which takes minutes for millions of events, and answers at once. reconcile_busy: too many runs are in
   * progress.
   */
  'billing.reconcile.start': [Authored<object>, { id: string }];
  /** The run that started last, of any state. Null: none in the last day. */
  'billing.reconcile.latest': [Record<string, never>, { run: ReconcileRun | null }];
  /** not_found: no such run, or a very old one. */
  'billing.reconcile.get': [{ id: string }, ReconcileRun];
  /** Heads of the journals, ascending by tenant, after the tenant `after`. invalid_parameter. */
  'billing.journal.heads': [PageQuery, Page<JournalHead>];
  /**
   * Returns those of the given heads, of any age, that the journal no longer contains. invalid_parameter: too many, or
   * malformed heads.
   */
  'billing.journal.compare': [{ heads: JournalHead[] }, { differences: Difference[] }];
  /**
   * Sets the monthly budget of a tenant (`keyId` null) or of a key. not_found (tenant, key), invalid_budget,
   * invalid_thresholds, too_many_budgets. `thresholdsPercent`: null for those of the configuration; absent: unchanged.
   * In force when it is answered. UnavailableError: the change may be committed but not in force, so repeat it. A
   * repeat changes nothing.
   */
  'billing.budget.set': [
    Authored<{
      tenantId: string;
      keyId: string | null;
      budgetCents: SetBudget;
      thresholdsPercent?: number[] | null;
    }>,
    BudgetState,
  ];
  /** Never refuses a tenant or key without budgets. */
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
  /** Where a request is in the books. not_found: its charge has not arrived. */
  'billing.request.entry': [
    { requestId: string },
    {
      charge: ChargedRequest & { tenantId: string; period: string };
      /**
       * True: at the end of a month it was, even with others, less than a cent. An entry of a later month includes it.
       */
      carriedOn: boolean;
      /** Null: not posted yet, or carried. */
      entry: LedgerEntry | null;
      /** The invoice of its month; null while that is open. */
      invoice: { period: string; accountingNumber: number; status: 'paid' | 'void' } | null;
    },
  ];
  /**
   * The hold of a request, while the admission store has it: of a running request, or of one whose cost is on its way
   * to the ledger. `nanos`: held, or the cost; decimal string. Null: there is none, or the store cannot be reached.
   * invalid_parameter
   */
  'billing.request.hold': [
    { tenantId: string; requestId: string },
    { hold: { state: 'pending' | 'settled'; nanos: string; quietMs: number } | null },
  ];
  /**
   * The message of topic `tenant-news`, sent ahead of it. The admission store has it when this is answered. A repeat
   * succeeds. invalid_parameter; UnavailableError: the store cannot take it now.
   */
  'billing.tenants.tell': [TenantUpdate, { told: true }];
  /**
   * Computes the admission store's state of a tenant anew from the books and from the tenant's holds, whatever is
   * stored. `dryRun`: only returns what would change. not_found; UnavailableError when the store does not answer.
   */
  'billing.tenants.repair': [Authored<{ tenantId: string; dryRun?: boolean }>, TenantRepair];
  /** The changes that billing made. Like auth.audit.list. */
  'billing.audit.list': [AuditQuery, Page<AuditRow>];
  /** Issued invoices, newest number first; `after` is a number. invalid_parameter */
  'billing.invoices.list': [{ tenantId?: string; period?: string } & PageQuery, Page<IssuedInvoice>];
  /** not_found: no such invoice of this tenant. */
  'billing.invoices.get': [{ tenantId: string; accountingNumber: number }, IssuedInvoice];
  /**
   * Closes a month that is over, and all before it, for one tenant or for all. Returns the numbers of invoices issued,
   * of months without a debit, and of months that stay open because the credit does not pay for them. A repeat closes
   * the remaining months. invalid_period
   */
  'billing.invoices.close': [
    Authored<{ period: string; tenantId?: string }>,
    { invoices: number; empty: number; waiting: number },
  ];
  /**
   * Reverses an invoice: its amount goes back to the tenant's credit. A repeat returns the first answer. not_found,
   * invalid_parameter, ref_conflict, invalid_amount.
   */
  'billing.invoices.void': [
    Authored<{ accountingNumber: number; reason: string }>,
    { invoice: IssuedInvoice; entry: LedgerEntry; balanceCents: number },
  ];

  /**
   * An invitation that makes an operator, who also becomes owner of `tenantId`. `hash`: that of the secret in the link,
   * which only the caller knows. `url`: the link without its fragment, the secret. It works once, until `expiresAt`.
   * not_found (tenant); operator_exists: with `onlyFirst`, there is an operator already.
   */
  'console.operators.invite': [
    Authored<{ hash: string; tenantId?: string; onlyFirst?: boolean }>,
    { id: string; url: string; expiresAt: string },
  ];
}

export type Subject = keyof Subjects;
export type RequestOf<S extends Subject> = Subjects[S][0];
export type ReplyOf<S extends Subject> = Subjects[S][1];
