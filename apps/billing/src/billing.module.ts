import { AdmissionStore } from '@tollgate/admission';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import {
  Inject,
  Injectable,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { DataSource } from 'typeorm';
import { allBudgetNews } from './budgets/budget-rows';
import { Budgets } from './budgets/budgets';
import { ChargeGatherer } from './consume/charge-gatherer';
import { countCharges, countPostings } from './consume/metrics';
import { Poster } from './consume/poster';
import { PostingLoop } from './consume/posting-loop';
import { openBillingDatabase } from './database';
import { readBooks } from './ledger/books-store';
import { creditNews } from './ledger/core/books';
import type { Booked } from './ledger/booking';
import { MoneyOut } from './refunds/money-out';
import { PeriodicTask } from './periodic-task';
import { Reconciler } from './reconcile/reconciler';
import { ReconcileRuns } from './reconcile/runs';
import { billingSummary } from './summary/billing-summary';
import { spendableNanos } from './summary/spendable';
import { TenantStatus } from './tenants/tenant-status';
import { TopUps } from './topups/top-ups';

export interface BillingOptions {
  databaseUrl: string;
  /** Usage of a tenant is posted at most once in so long. */
  postingIntervalMs?: number;
  /** Percent of a budget at which an event is recorded, as the configuration has them now; asked at each use. */
  thresholdsPercent?: () => readonly number[];
}

const DEFAULT_POSTING_INTERVAL_MS = 1_000;
const RELEASE_ABANDONED_EVERY_MS = 5_000;
const BILLING_OPTIONS = Symbol('BILLING_OPTIONS');

/** Own class, so that in one process with other services each gets its own data source. */
export class BillingDataSource extends DataSource {}

/** Connects the ledger with the messages, and both with the process's life. */
@Injectable()
class BillingService implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly relay: OutboxRelay;
  private readonly loop: PostingLoop;
  private readonly moneyOut: MoneyOut;
  private readonly tasks: PeriodicTask[];
  private readonly runs: ReconcileRuns;
  private readonly options: { postingIntervalMs: number; thresholdsPercent?: () => readonly number[] };

  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly messages: Messages,
    private readonly admission: AdmissionStore,
    @Inject(BILLING_OPTIONS)
    { postingIntervalMs = DEFAULT_POSTING_INTERVAL_MS, thresholdsPercent }: BillingOptions,
  ) {
    this.options = { postingIntervalMs, ...(thresholdsPercent && { thresholdsPercent }) };
    this.relay = new OutboxRelay(dataSource, messages, { name: 'billing' });
    this.loop = new PostingLoop(new Poster(dataSource, this.options), (tenants) => {
      countPostings(tenants);
      this.relay.wake();
    });
    this.moneyOut = new MoneyOut(dataSource, messages, admission, this.options);
    this.tasks = [
      new PeriodicTask('give back withdrawals that nobody booked', RELEASE_ABANDONED_EVERY_MS, async () => {
        if ((await this.moneyOut.releaseAbandoned()) > 0) this.relay.wake();
      }),
    ];
    this.runs = new ReconcileRuns(dataSource, new Reconciler(dataSource, messages, admission));
  }

  onModuleInit(): void {
    const gatherer = new ChargeGatherer(this.dataSource, this.options);
    const status = new TenantStatus(this.dataSource, this.options);
    const topUps = new TopUps(this.dataSource, this.messages, this.options);
    const budgets = new Budgets(this.dataSource, this.messages, this.options);
    this.messages.consume('charges', 'billing', async (batch) => {
      const result = await gatherer.gather(batch);
      countCharges(result);
      this.committed(result);
    });
    this.messages.consume('tenant-news', 'billing', async (batch) => {
      await status.apply(batch);
      this.relay.wake();
    });
    this.messages.handle('billing.credit.news', async ({ tenantId }) => {
      const books = await readBooks(this.dataSource.manager, tenantId);
      const set = await allBudgetNews(this.dataSource.manager, tenantId);
      return books && { ...creditNews(books, []), ...(set.length > 0 && { budgets: set }) };
    });
    this.messages.handle('billing.credit.spendable', async ({ tenantId }) => ({
      spendableNanos: (await spendableNanos(this.admission, tenantId))?.toString() ?? null,
    }));
    this.messages.handle('billing.credit.add', (request) => this.booked(topUps.add(request)));
    this.messages.handle('billing.credit.refund', (request) => this.booked(this.moneyOut.refund(request)));
    this.messages.handle('billing.credit.adjust', (request) => this.booked(this.moneyOut.adjust(request)));
    this.messages.handle('billing.summary', (request) => billingSummary(this.dataSource, request));
    this.messages.handle('billing.reconcile.start', () => this.runs.start());
    this.messages.handle('billing.reconcile.get', (request) => this.runs.get(request));
    this.messages.handle('billing.budget.set', async (request) => {
      const state = await budgets.set(request);
      this.relay.wake();
      return state;
    });
    this.messages.handle('billing.budget.get', (request) => budgets.get(request));
    this.messages.handle('billing.budget.keys', (request) => budgets.keys(request));
  }

  onApplicationBootstrap(): void {
    this.relay.start();
    this.loop.start();
    for (const task of this.tasks) task.start();
  }

  /** The books are flushed and the news published while messages still take them; whoever stops the process stops consuming first. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.tasks.map((task) => task.stop()));
    await this.runs.stop();
    await this.loop.stop();
    await this.relay.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }

  private async booked(work: Promise<Booked>): Promise<Booked['reply']> {
    const { reply, dueInMs } = await work;
    this.committed({ dueInMs });
    return reply;
  }

  private committed({ dueInMs }: { dueInMs: number | null }): void {
    this.relay.wake();
    if (dueInMs !== null) this.loop.wakeIn(dueInMs);
  }
}

@Module({})
export class BillingModule {
  static register(options: BillingOptions): DynamicModule {
    return {
      module: BillingModule,
      providers: [
        { provide: BILLING_OPTIONS, useValue: options },
        { provide: BillingDataSource, useFactory: () => openBillingDatabase(options.databaseUrl) },
        BillingService,
      ],
    };
  }
}
