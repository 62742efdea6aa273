import type { AdmissionStore } from '@tollgate/admission';
import { RequestError, UnavailableError, type CreditNews } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { failPoint } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { allBudgetNews } from './budgets/budget-rows';
import { Budgets } from './budgets/budgets';
import { ChargeGatherer } from './consume/charge-gatherer';
import { countCharges } from './consume/metrics';
import { tellBooked } from './consume/tell-admission';
import type { ClosingOptions, InvoiceCloser } from './invoices/invoice-closer';
import { Invoices } from './invoices/invoices';
import { readBooks } from './ledger/books-store';
import { creditNews } from './ledger/core/books';
import { entryOfRequest, requestsOfEntry } from './links/links';
import { compareHeads, journalHeads } from './reconcile/heads';
import type { ReconcileRuns } from './reconcile/runs';
import type { MoneyOut } from './refunds/money-out';
import type { PoisonWatch } from './repair/poison-watch';
import type { TenantRepairs } from './repair/tenant-repairs';
import { billingSummary } from './summary/billing-summary';
import { spendableNanos } from './summary/spendable';
import { TenantStatus, whyNotTenantNews } from './tenants/tenant-status';
import { TopUps } from './topups/top-ups';

export interface ServiceOptions extends ClosingOptions {
  thresholdsPercent?: () => readonly number[];
  currency: () => string;
}

/** What the handlers work with. */
export interface BillingParts {
  dataSource: DataSource;
  messages: Messages;
  admission: AdmissionStore;
  moneyOut: MoneyOut;
  closer: InvoiceCloser;
  runs: ReconcileRuns;
  options: ServiceOptions;
  repairs: TenantRepairs;
  /** Null: nobody watches. */
  watch: PoisonWatch | null;
  /** After each commit: news waits in the outbox, and usage of somebody is due in so many milliseconds (null: of nobody). */
  committed(dueInMs: number | null): void;
}

/** Every topic that billing consumes, and every subject that it answers. */
export function registerHandlers(parts: BillingParts): void {
  const { dataSource, messages, admission, moneyOut, closer, runs, options, repairs, watch, committed } = parts;
  const gatherer = new ChargeGatherer(dataSource, options);
  const status = new TenantStatus(dataSource, admission, options);
  const topUps = new TopUps(dataSource, messages, options);
  const budgets = new Budgets(dataSource, messages, admission, { ...options, now: () => options.now().getTime() });
  const invoices = new Invoices(dataSource, options);
  // Money is in force when it is answered: a request that comes after the answer runs on it.
  const booked = async <T>(work: Promise<{ reply: T; dueInMs: number | null; news: CreditNews }>): Promise<T> => {
    const { reply, dueInMs, news } = await work;
    committed(dueInMs);
    await tellBooked(admission, news);
    // Money that a forged version keeps from being heard of is in force a moment later.
    watch?.look(news.tenantId);
    return reply;
  };

  messages.consume('charges', 'billing', async (batch) => {
    const result = await gatherer.gather(batch);
    failPoint('gathered');
    countCharges(result);
    committed(result.dueInMs);
  });
  messages.consume(
    'tenant-news',
    'billing',
    async (batch) => {
      await status.apply(batch);
      committed(null);
    },
    { whyNot: whyNotTenantNews },
  );
  messages.handle('billing.tenants.tell', async (news) => {
    const whyNot = whyNotTenantNews(news);
    if (whyNot !== null) throw new RequestError('invalid_parameter', whyNot);
    try {
      await status.enforce(news);
    } finally {
      committed(null);
    }
    // A store that a forged version has put ahead of the books did not listen.
    await watch?.heal(news.tenantId);
    return { told: true };
  });
  messages.handle('billing.credit.news', async ({ tenantId }) => {
    const books = await readBooks(dataSource.manager, tenantId);
    const set = await allBudgetNews(dataSource.manager, tenantId);
    return books && { ...creditNews(books, []), ...(set.length > 0 && { budgets: set }) };
  });
  messages.handle('billing.credit.spendable', async ({ tenantId }) => ({
    spendableNanos: (await spendableNanos(admission, tenantId))?.toString() ?? null,
  }));
  messages.handle('billing.credit.add', (request) => booked(topUps.add(request)));
  // A debit that the store would not hear of, as it is ahead of the books: that is looked at, and the next try goes through.
  const debited = async <T>(tenantId: string, work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof UnavailableError) watch?.look(tenantId);
      throw error;
    }
  };
  messages.handle('billing.credit.refund', (request) => booked(debited(request.tenantId, moneyOut.refund(request))));
  messages.handle('billing.credit.adjust', (request) => booked(debited(request.tenantId, moneyOut.adjust(request))));
  messages.handle('billing.tenants.repair', (request) => repairs.repair(request));
  messages.handle('billing.summary', (request) => billingSummary(dataSource, request, options.now()));
  messages.handle('billing.entry.requests', (request) => requestsOfEntry(dataSource, request));
  messages.handle('billing.request.entry', (request) => entryOfRequest(dataSource, request));
  messages.handle('billing.invoices.list', (request) => invoices.list(request));
  messages.handle('billing.invoices.close', async (request) => {
    const closed = await closer.close(request);
    committed(null);
    return closed;
  });
  messages.handle('billing.invoices.void', (request) => booked(invoices.void(request)));
  messages.handle('billing.budget.set', async (request) => {
    try {
      return await budgets.set(request);
    } finally {
      committed(null);
    }
  });
  messages.handle('billing.budget.get', (request) => budgets.get(request));
  messages.handle('billing.budget.keys', (request) => budgets.keys(request));
  messages.handle('billing.reconcile.start', () => runs.start());
  messages.handle('billing.reconcile.get', (request) => runs.get(request));
  messages.handle('billing.journal.heads', (request) => journalHeads(dataSource, request));
  messages.handle('billing.journal.compare', (request) => compareHeads(dataSource, request));
}
