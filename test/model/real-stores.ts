import { askForCredit, TenantUnknownError, type AdmissionStore, type AskForCredit } from '@tollgate/admission';
import { RequestError, type Charge, type BalanceUpdate, type ReplyOf, type UsageEvent } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { tenantRow, type TestDatabase } from '@tollgate/testing';
import { ChargeGatherer } from '../../apps/billing/src/gather/charge-gatherer';
import { Poster } from '../../apps/billing/src/post/poster';
import { balanceUpdate } from '../../apps/billing/src/ledger/core/books';
import { readBooks } from '../../apps/billing/src/ledger/books-store';
import { MonthSpent } from '../../apps/metering/src/query/month-spent';
import { openBillingDatabase, type BillingDataSource } from '../../apps/billing/src/database';
import { allBudgetUpdates } from '../../apps/billing/src/budgets/budget-rows';
import { Budgets } from '../../apps/billing/src/budgets/budgets';
import { HeldByKey } from '../../apps/billing/src/budgets/held-by-key';
import { DEFAULT_CLOSE_DELAY_MS, InvoiceCloser } from '../../apps/billing/src/invoices/invoice-closer';
import { auditInvoiceNumbers } from '../../apps/billing/src/reconcile/invoice-audit';
import { TenantStatus } from '../../apps/billing/src/tenants/tenant-status';
import { auditLedger } from '../../apps/billing/src/reconcile/audit';
import { MoneyOut } from '../../apps/billing/src/refunds/money-out';
import { TopUps } from '../../apps/billing/src/topups/top-ups';
import { UsageConsumer } from '../../apps/metering/src/consume/usage-consumer';
import { openMeteringDatabase, type MeteringDataSource } from '../../apps/metering/src/database';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import type { Admission, Booking, BooksView, CrashIn, SetBudget, Stores } from './stores';

/** The tables in which a crash can happen, as `schema.table`. */
const CRASH_TABLES = [
  'metering.usage_hour',
  'metering.outbox',
  'billing.charge',
  'billing.tenant_books',
  'billing.journal_entry',
  'billing.outbox',
  'billing.invoice',
  'billing.invoice_counter',
];

/**
 * The real services on their databases, with a real admission store. No relay runs: after a call, this class reads the
 * outboxes and empties them.
 */
export class RealStores implements Stores {
  readonly admission: Admission;
  /** Reads a tenant from the books, for a store that can be emptied. */
  readonly ask: AskForCredit;
  private readonly consumer: UsageConsumer;
  private readonly gatherer: ChargeGatherer;
  private readonly poster: Poster;
  private readonly topUps: TopUps;
  private readonly moneyOut: MoneyOut;
  private readonly tenantStatus: TenantStatus;
  private readonly budgets: Budgets;
  private readonly closer: InvoiceCloser;

  private constructor(
    readonly clock: { nowMs: number },
    private readonly database: TestDatabase,
    private readonly sources: { metering: MeteringDataSource; billing: BillingDataSource },
    private readonly messages: PostgresMessages,
    admission: AdmissionStore,
    readonly empty?: () => Promise<void>,
  ) {
    this.admission = admission;
    this.ask = askForCredit(messages, () => clock.nowMs);
    this.consumer = new UsageConsumer(sources.metering, ANY_PRICE);
    const now = () => new Date(clock.nowMs);
    const options = { postingIntervalMs: 0, now, currency: () => 'USD' };
    this.gatherer = new ChargeGatherer(sources.billing, options);
    this.poster = new Poster(sources.billing, options);
    this.topUps = new TopUps(sources.billing, messages, options);
    this.moneyOut = new MoneyOut(sources.billing, messages, admission, options);
    this.tenantStatus = new TenantStatus(sources.billing, admission, options);
    this.budgets = new Budgets(sources.billing, messages, admission, new HeldByKey(admission), options);
    this.closer = new InvoiceCloser(sources.billing, { ...options, closeDelayMs: DEFAULT_CLOSE_DELAY_MS });
  }

  /**
   * @param admission a store that uses this clock
   * @param empty deletes all its data
   */
  static async open(
    database: TestDatabase,
    clock: { nowMs: number },
    { admission, empty }: { admission: AdmissionStore; empty?: () => Promise<void> },
  ): Promise<RealStores> {
    const messages = new PostgresMessages({ url: database.url, applicationName: 'test-model' });
    messages.handle('auth.tenants.get', async ({ tenantId }) => tenantRow(tenantId));
    messages.handle('auth.keys.get', async ({ id }) => ({ id }) as ReplyOf<'auth.keys.get'>);
    const [metering, billing] = [await openMeteringDatabase(database.url), await openBillingDatabase(database.url)];
    const spent = new MonthSpent(metering);
    messages.handle('metering.spent', (request) => spent.page(request));
    messages.handle('billing.credit.news', async ({ tenantId }) => {
      const books = await readBooks(billing.manager, tenantId);
      return books && { ...balanceUpdate(books, []), budgets: await allBudgetUpdates(billing.manager, tenantId) };
    });
    await messages.start();
    await database.query(`CREATE TABLE public.crash (at text)`);
    await database.query(`INSERT INTO public.crash VALUES (NULL)`);
    await database.query(`CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
      $$ BEGIN IF TG_TABLE_NAME = (SELECT at FROM public.crash) THEN RAISE 'crash'; END IF; RETURN NULL; END $$`);
    for (const table of CRASH_TABLES) {
      await database.query(
        `CREATE TRIGGER zz_crash AFTER INSERT OR UPDATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION public.crash()`,
      );
    }
    return new RealStores(clock, database, { metering, billing }, messages, admission, empty);
  }

  async end(): Promise<void> {
    await this.messages.close();
    await Promise.all([this.sources.metering.destroy(), this.sources.billing.destroy()]);
  }

  async recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null> {
    return (await this.crashing(crash, () => this.consumer.consume(batch))) ? this.outbox<Charge>('metering') : null;
  }

  async gather(batch: readonly Charge[], crash: CrashIn): Promise<BalanceUpdate[] | null> {
    return (await this.crashing(crash, () => this.gatherer.gather(batch))) ? this.outbox('billing') : null;
  }

  async post(crash: CrashIn): Promise<BalanceUpdate[] | null> {
    return (await this.crashing(crash, () => this.poster.postDue())) ? this.outbox('billing') : null;
  }

  async money(tenantId: string, booking: Booking): Promise<{ updates: BalanceUpdate[]; refused: boolean }> {
    const { kind, cents, ref, allowDebt } = booking;
    const entry = { tenantId, source: 'manual', ref };
    const booked = {
      topUp: () => this.topUps.add({ ...entry, amountCents: cents }),
      refund: () => this.moneyOut.refund({ ...entry, amountCents: -cents }),
      adjust: () => this.moneyOut.adjust({ ...entry, amountCents: cents, reason: 'as the test says', allowDebt }),
    };
    const refused = await booked[kind]().then(
      () => false,
      (error: unknown) => {
        if (error instanceof RequestError && ['ref_conflict', 'insufficient_credit'].includes(error.code)) return true;
        // Before money out, an emptied store has to ask the books for the tenant.
        if (error instanceof TenantUnknownError && this.empty) return true;
        throw error;
      },
    );
    return { updates: await this.outbox('billing'), refused };
  }

  async status(tenantId: string, version: number, suspended: boolean): Promise<BalanceUpdate[]> {
    await this.tenantStatus.apply([{ tenantId, version, status: suspended ? 'suspended' : 'active' }]);
    return this.outbox('billing');
  }

  async setBudget(tenantId: string, { keyId, cents }: SetBudget): Promise<BalanceUpdate[]> {
    await this.budgets.set({ tenantId, keyId, budgetCents: cents });
    return this.outbox('billing');
  }

  async close(crash: CrashIn): Promise<BalanceUpdate[] | null> {
    return (await this.crashing(crash, () => this.closer.closeDue())) ? this.outbox('billing') : null;
  }

  async books(tenantId: string): Promise<BooksView> {
    const [books] = await this.database.query<{ balance: string; unposted: string }>(
      `SELECT balance_cents AS balance, carried_nanos + gathered_nanos AS unposted FROM billing.tenant_books
       WHERE tenant_id = $1`,
      [tenantId],
    );
    const charges = await this.database.query<{ id: string; cost_nanos: string }>(
      'SELECT id, cost_nanos FROM billing.charge WHERE tenant_id = $1',
      [tenantId],
    );
    const { differences } = await auditLedger(this.sources.billing, [tenantId]);
    differences.push(...(await auditInvoiceNumbers(this.sources.billing)).differences);
    return {
      balanceCents: BigInt(books?.balance ?? 0),
      unpostedNanos: BigInt(books?.unposted ?? 0),
      charges: new Map(charges.map((charge) => [charge.id, BigInt(charge.cost_nanos)])),
      faults: differences.map((difference) => JSON.stringify(difference)),
    };
  }

  /** False if the transaction met the crash. A call that does not touch the table succeeds. */
  private async crashing(table: CrashIn, work: () => Promise<unknown>): Promise<boolean> {
    if (table === null) {
      await work();
      return true;
    }
    await this.database.query('UPDATE public.crash SET at = $1', [table]);
    try {
      await work();
      return true;
    } catch (error) {
      if (!/crash/.test(String(error))) throw error;
      return false;
    } finally {
      await this.database.query('UPDATE public.crash SET at = NULL');
    }
  }

  private async outbox<T extends Charge | BalanceUpdate>(schema: 'metering' | 'billing'): Promise<T[]> {
    const rows = await this.database.query<{ id: string; topic: string; data: T }>(
      `DELETE FROM ${schema}.outbox RETURNING id, topic, data`,
    );
    // No consumer of budget events takes part.
    const read = rows.filter(({ topic }) => topic !== 'budget-events');
    return read.sort((a, b) => Number(a.id) - Number(b.id)).map((row) => row.data);
  }
}
