import type { AuditQuery, AuditRow, Authored } from '../audit';
import type { BillingFleet } from '../fleet';
import type { BalanceUpdate, TenantUpdate } from '../events';
import type { Difference, JournalHead, ReconcileRun, TenantRepair } from '../reconcile';
import type { Page, PageQuery } from '../page';
import type {
  BillingSummary,
  BudgetState,
  ChargedRequest,
  CreditState,
  IssuedInvoice,
  LedgerEntry,
  SetBudget,
  StatementEntry,
} from '../resources';
import type { RunningRequest } from '../running-request';

/** An entry of the ledger, and the balance after it. `created`: false for a repeat, which booked nothing. */
interface BookedEntry {
  entry: LedgerEntry;
  balanceCents: number;
  created: boolean;
}

/** What billing answers, in the form of `Subjects` (subjects.ts). */
export interface BillingSubjects {
  /** A line if the books have entries in another currency. */
  'billing.config.check': [{ currency: string }, { problems: string[] }];
  /** Entries newest first. invalid_parameter: unknown `after`. */
  'billing.summary': [{ tenantId: string } & PageQuery, BillingSummary];
  /**
   * What the tenant can spend now according to the admission store, decimal string. Null while the store cannot be
   * reached or does not know the tenant.
   */
  'billing.credit.spendable': [{ tenantId: string }, { spendableNanos: string | null }];
  /** Balance, held and spendable amounts. A tenant without books has zero. */
  'billing.credit.state': [{ tenantId: string }, CreditState];
  /** The balances of at most 200 tenants, and what the ledger debited this month (UTC). invalid_parameter */
  'billing.tenants.balances': [
    { ids: string[] },
    { data: { tenantId: string; balanceCents: number; debitedCents: number }[] },
  ];
  /** Credit of all tenants, and what waits. */
  'billing.fleet': [Record<string, never>, BillingFleet];
  /**
   * The balance update of the tenant's books as they are now; null if there are none. It has no releases: settled holds
   * in the store have their own updates on the way, and count twice until then.
   */
  'billing.credit.news': [{ tenantId: string }, BalanceUpdate | null];
  /**
   * A top-up. ref_conflict: this source and ref were used with other input; invalid_amount; not_found (tenant);
   * tenant_closed. A repeat returns the first entry and balance, with `created` false, also for a closed tenant.
   */
  'billing.credit.add': [
    Authored<{ tenantId: string; amountCents: number; source: string; ref: string; reason?: string }>,
    BookedEntry,
  ];
  /**
   * A refund, of at most what is not spent, gathered or held by running requests. `all`: that much.
   * insufficient_credit; otherwise like billing.credit.add.
   */
  'billing.credit.refund': [
    Authored<{ tenantId: string; amountCents: number | 'all'; source: string; ref: string; reason?: string }>,
    BookedEntry,
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
    BookedEntry,
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
   * Returns the given heads, of any age, that the journal no longer contains. invalid_parameter: too many, or
   * malformed heads.
   */
  'billing.journal.compare': [{ heads: JournalHead[] }, { differences: Difference[] }];
  /**
   * Sets the monthly budget of a tenant (`keyId` null) or of a key. not_found (tenant, key), invalid_budget,
   * invalid_thresholds, too_many_budgets. `thresholdsPercent` null: the configuration's; absent: unchanged.
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
  /**
   * The same for some keys of the tenant, at most 200, ascending by key id. invalid_parameter. `heldNanos`: what
   * running requests hold, by key, decimal strings; a key without any is left out. Null or absent: not known. It is
   * read if one of the keys has a budget, and then shared for a second at least. `byDefault`: the keys of which the
   * caller knows a budget by default; absent: all may have one.
   */
  'billing.budget.of': [
    { tenantId: string; keyIds: string[]; byDefault?: string[] },
    { data: BudgetState[]; heldNanos?: Record<string, string> | null },
  ];
  /** The tenant's keys with a budget of their own, ascending by key id. invalid_parameter. */
  'billing.budget.keys': [{ tenantId: string } & PageQuery, Page<BudgetState>];
  /**
   * The requests that a usage entry debits, in pages after the request `after`: their costs + carried in = amount +
   * carried out. With a tenant, entries of others do not exist. not_found, invalid_parameter.
   */
  'billing.entry.requests': [
    { entryId: string; tenantId?: string; limit?: number; after?: string },
    {
      entry: StatementEntry & { tenantId: string };
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
      /** The invoice of its month; null while that is open, or if nothing was debited in it. */
      invoice: { period: string; accountingNumber: number; status: 'paid' | 'void' } | null;
      /** Whether its month is closed. Absent: an earlier version of billing does not say it. */
      monthClosed?: boolean;
    },
  ];
  /**
   * The hold of a request, while the admission store has it: of a running request, or of one whose cost is on its way
   * to the ledger. `nanos`: held, or the cost; decimal string. `running`: of a request that runs. Null: there is none,
   * or the store cannot be reached. invalid_parameter
   */
  'billing.request.hold': [
    { tenantId: string; requestId: string },
    { hold: { state: 'pending' | 'settled'; nanos: string; quietMs: number; running?: RunningRequest } | null },
  ];
  /**
   * The message of topic `tenant-news`, sent ahead of it. The admission store has it when this is answered. A repeat
   * succeeds. invalid_parameter; UnavailableError: the store cannot take it now.
   */
  'billing.tenants.tell': [TenantUpdate, { told: true }];
  /**
   * Recomputes the admission store's state of a tenant from the books and from the tenant's holds, whatever is
   * stored. `dryRun`: only returns what would change. not_found; UnavailableError when the store does not answer.
   */
  'billing.tenants.repair': [Authored<{ tenantId: string; dryRun?: boolean }>, TenantRepair];
  /**
   * Removes the names and addresses of the people of a closed tenant from the rows of its changes, also from rows that
   * are added later. Ids, amounts and texts of entries stay. not_found, tenant_not_closed. A repeat succeeds.
   * UnavailableError: it has many rows, and a repeat goes on with those that are left.
   */
  'billing.tenants.erase': [{ tenantId: string }, { erased: true }];
  /** The changes that billing made. Like auth.audit.list. */
  'billing.audit.list': [AuditQuery, Page<AuditRow>];
  /**
   * Removes the name and address of a person of the console from the rows of its changes. The id stays. A repeat erases
   * what was written meanwhile. UnavailableError: there are many rows, and a repeat goes on with those that are left.
   */
  'billing.people.erase': [{ userId: string }, { erased: true }];
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
}
