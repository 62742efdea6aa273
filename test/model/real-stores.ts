import type { AdmissionStore } from '@tollgate/admission';
import { RequestError, type Charge, type CreditNews, type UsageEvent } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import type { TestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';
import { ChargeGatherer } from '../../apps/billing/src/consume/charge-gatherer';
import { Poster } from '../../apps/billing/src/consume/poster';
import { openBillingDatabase } from '../../apps/billing/src/database';
import { auditLedger } from '../../apps/billing/src/reconcile/audit';
import { MoneyOut } from '../../apps/billing/src/refunds/money-out';
import { TopUps } from '../../apps/billing/src/topups/top-ups';
import { UsageConsumer } from '../../apps/metering/src/consume/usage-consumer';
import { openMeteringDatabase } from '../../apps/metering/src/database';
import type { Admission, BooksView, CrashIn, Stores } from './stores';

const POSTING = { postingIntervalMs: 0, now: () => new Date() };
/** Where a crash can strike, as `schema.table`. */
const CRASH_TABLES = [
  'metering.usage_hour',
  'metering.outbox',
  'billing.charge',
  'billing.tenant_books',
  'billing.journal_entry',
  'billing.outbox',
];

/** The services as they are, on their databases, and an admission store as it is. No relay runs: the outboxes are what a call left, and are taken out by this. */
export class RealStores implements Stores {
  readonly admission: Admission;
  private readonly consumer: UsageConsumer;
  private readonly gatherer: ChargeGatherer;
  private readonly poster: Poster;
  private readonly topUps: TopUps;
  private readonly moneyOut: MoneyOut;

  private constructor(
    readonly clock: { nowMs: number },
    private readonly database: TestDatabase,
    private readonly sources: { metering: DataSource; billing: DataSource },
    private readonly messages: PostgresMessages,
    admission: AdmissionStore,
  ) {
    this.admission = admission;
    this.consumer = new UsageConsumer(sources.metering);
    this.gatherer = new ChargeGatherer(sources.billing, POSTING);
    this.poster = new Poster(sources.billing, POSTING);
    this.topUps = new TopUps(sources.billing, messages, POSTING);
    this.moneyOut = new MoneyOut(sources.billing, messages, admission, POSTING);
  }

  /** @param admission a store that goes by this clock */
  static async open(database: TestDatabase, clock: { nowMs: number }, admission: AdmissionStore): Promise<RealStores> {
    const messages = new PostgresMessages({ url: database.url, applicationName: 'test-model' });
    messages.handle('auth.tenants.get', async ({ tenantId }) => {
      return { id: tenantId, name: 'T', plan: 'default', status: 'active', createdAt: new Date(0).toISOString() };
    });
    await messages.start();
    const [metering, billing] = [await openMeteringDatabase(database.url), await openBillingDatabase(database.url)];
    await database.query(`CREATE TABLE public.crash (at text)`);
    await database.query(`INSERT INTO public.crash VALUES (NULL)`);
    await database.query(`CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
      $$ BEGIN IF TG_TABLE_NAME = (SELECT at FROM public.crash) THEN RAISE 'crash'; END IF; RETURN NULL; END $$`);
    for (const table of CRASH_TABLES) {
      await database.query(
        `CREATE TRIGGER zz_crash AFTER INSERT OR UPDATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION public.crash()`,
      );
    }
    return new RealStores(clock, database, { metering, billing }, messages, admission);
  }

  async close(): Promise<void> {
    await this.messages.close();
    await Promise.all([this.sources.metering.destroy(), this.sources.billing.destroy()]);
  }

  async recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null> {
    return (await this.crashing(crash, () => this.consumer.consume(batch))) ? this.outbox<Charge>('metering') : null;
  }

  async gather(batch: readonly Charge[], crash: CrashIn): Promise<CreditNews[] | null> {
    return (await this.crashing(crash, () => this.gatherer.gather(batch))) ? this.outbox('billing') : null;
  }

  async post(crash: CrashIn): Promise<CreditNews[] | null> {
    return (await this.crashing(crash, () => this.poster.postDue())) ? this.outbox('billing') : null;
  }

  async money(tenantId: string, cents: number, ref: string): Promise<{ news: CreditNews[]; refused: boolean }> {
    const entry = { tenantId, amountCents: Math.abs(cents), source: 'manual', ref };
    const refused = await (cents > 0 ? this.topUps.add(entry) : this.moneyOut.refund(entry)).then(
      () => false,
      (error: unknown) => {
        if (error instanceof RequestError && ['ref_conflict', 'insufficient_credit'].includes(error.code)) return true;
        throw error;
      },
    );
    return { news: await this.outbox('billing'), refused };
  }

  async books(tenantId: string): Promise<BooksView> {
    const [books] = await this.database.query<{ balance: string; unposted: string }>(
      'SELECT balance_cents AS balance, carried_nanos + gathered_nanos AS unposted FROM billing.tenant_books WHERE tenant_id = $1',
      [tenantId],
    );
    const charges = await this.database.query<{ id: string; cost_nanos: string }>(
      'SELECT id, cost_nanos FROM billing.charge WHERE tenant_id = $1',
      [tenantId],
    );
    const { differences } = await auditLedger(this.sources.billing, [tenantId]);
    return {
      balanceCents: BigInt(books?.balance ?? 0),
      unpostedNanos: BigInt(books?.unposted ?? 0),
      charges: new Map(charges.map((charge) => [charge.id, BigInt(charge.cost_nanos)])),
      faults: differences.map((difference) => JSON.stringify(difference)),
    };
  }

  /** False: the transaction met the crash. A call that does not touch the table goes through. */
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

  private async outbox<T extends Charge | CreditNews>(schema: 'metering' | 'billing'): Promise<T[]> {
    const rows = await this.database.query<{ id: string; data: T }>(`DELETE FROM ${schema}.outbox RETURNING id, data`);
    return rows.sort((a, b) => Number(a.id) - Number(b.id)).map((row) => row.data);
  }
}
