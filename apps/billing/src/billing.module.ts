import { AdmissionStore } from '@tollgate/admission';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import type { ConfigSource } from '@tollgate/runtime';
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
import { countClosed, countPostings, postingOverdue, uncovered } from './consume/metrics';
import { BooksCurrency } from './ledger/books-currency';
import { overdueSeconds, uncoveredSeconds } from './ledger/books-store';
import { Poster } from './consume/poster';
import { PostingLoop } from './consume/posting-loop';
import { openBillingDatabase } from './database';
import { registerHandlers, type ServiceOptions } from './handlers';
import { DEFAULT_CLOSE_DELAY_MS, InvoiceCloser } from './invoices/invoice-closer';
import { PeriodicTask } from './periodic-task';
import { HeadsTeller } from './reconcile/heads';
import { Reconciler } from './reconcile/reconciler';
import { ReconcileRuns } from './reconcile/runs';
import { MoneyOut } from './refunds/money-out';
import { PoisonWatch, ROUND_MS } from './repair/poison-watch';
import { TenantRepairs } from './repair/tenant-repairs';

export interface BillingOptions {
  databaseUrl: string;
  /** Usage of a tenant is posted at most once in so long. */
  postingIntervalMs?: number;
  /** Percent of a budget at which an event is recorded, as the configuration has them now; asked at each use. */
  thresholdsPercent?: () => readonly number[];
  /** Of all amounts, as the configuration has it. The books keep it: see `BooksCurrency`. */
  currency: () => string;
  /** Whose changes must not be of the currency; absent: it has none. */
  config?: Pick<ConfigSource, 'addCheck' | 'onChange'>;
  /** A month is closed so long after its end; an hour by default. */
  invoiceCloseDelayMs?: number;
  /** How often each tenant's state in the admission store is held against the books; a minute by default. Null: never, for tests of what it would repair. */
  watchEveryMs?: number | null;
  /** The clock by which months begin and end; the system's by default. For tests. */
  now?: () => Date;
}

const DEFAULT_POSTING_INTERVAL_MS = 1_000;
const RELEASE_ABANDONED_EVERY_MS = 5_000;
const CLOSE_MONTHS_EVERY_MS = 60_000;
const TELL_HEADS_EVERY_MS = 60 * 60 * 1_000;
const BILLING_OPTIONS = Symbol('BILLING_OPTIONS');

/** Own class, so that in one process with other services each gets its own data source. */
export class BillingDataSource extends DataSource {}

/** Connects the ledger with the messages, and both with the process's life. */
@Injectable()
class BillingService implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly relay: OutboxRelay;
  private measuring: (() => void)[] = [];
  private readonly loop: PostingLoop;
  private readonly moneyOut: MoneyOut;
  private readonly tasks: PeriodicTask[];
  private readonly runs: ReconcileRuns;
  private readonly closer: InvoiceCloser;
  private readonly options: ServiceOptions;
  private readonly repairs: TenantRepairs;
  private readonly watch: PoisonWatch | null;

  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly messages: Messages,
    private readonly admission: AdmissionStore,
    @Inject(BILLING_OPTIONS) private readonly given: BillingOptions,
  ) {
    this.options = {
      postingIntervalMs: given.postingIntervalMs ?? DEFAULT_POSTING_INTERVAL_MS,
      closeDelayMs: given.invoiceCloseDelayMs ?? DEFAULT_CLOSE_DELAY_MS,
      ...(given.thresholdsPercent && { thresholdsPercent: given.thresholdsPercent }),
      currency: given.currency,
      now: given.now ?? (() => new Date()),
    };
    this.relay = new OutboxRelay(dataSource, messages, { name: 'billing' });
    this.loop = new PostingLoop(new Poster(dataSource, this.options), (tenants) => {
      countPostings(tenants);
      this.relay.wake();
    });
    this.moneyOut = new MoneyOut(dataSource, messages, admission, this.options);
    this.closer = new InvoiceCloser(dataSource, this.options);
    const heads = new HeadsTeller(dataSource);
    this.repairs = new TenantRepairs(dataSource, messages, admission, this.options);
    const { watchEveryMs = ROUND_MS } = given;
    const watch = watchEveryMs === null ? null : new PoisonWatch(dataSource, admission, this.repairs);
    this.watch = watch;
    this.tasks = [
      ...(watch
        ? [new PeriodicTask('hold the admission store against the books', watchEveryMs!, () => watch.round())]
        : []),
      new PeriodicTask('close months', CLOSE_MONTHS_EVERY_MS, async () => {
        const closed = await this.closer.closeDue();
        if (closed) countClosed(closed);
        if (closed && closed.invoices > 0) this.relay.wake();
      }),
      new PeriodicTask('give back withdrawals that nobody booked', RELEASE_ABANDONED_EVERY_MS, async () => {
        if ((await this.moneyOut.releaseAbandoned()) > 0) this.relay.wake();
      }),
      new PeriodicTask('tell the heads of the journal', TELL_HEADS_EVERY_MS, () => heads.tell()),
    ];
    this.runs = new ReconcileRuns(dataSource, new Reconciler(dataSource, messages, admission));
  }

  async onModuleInit(): Promise<void> {
    await new BooksCurrency(this.dataSource).start(this.given.currency(), this.given.config);
    const { dataSource, messages, admission, moneyOut, closer, runs, options, repairs, watch } = this;
    const committed = (dueInMs: number | null) => {
      this.relay.wake();
      if (dueInMs !== null) this.loop.wakeIn(dueInMs);
    };
    registerHandlers({ dataSource, messages, admission, moneyOut, closer, runs, options, repairs, watch, committed });
  }

  onApplicationBootstrap(): void {
    const { manager } = this.dataSource;
    this.measuring = [
      postingOverdue.from(async () => [{ labels: {}, value: await overdueSeconds(manager) }]),
      uncovered.from(async () => [{ labels: {}, value: await uncoveredSeconds(manager) }]),
    ];
    this.relay.start();
    this.loop.start();
    for (const task of this.tasks) task.start();
  }

  /** The books are flushed and the news published while messages still take them; whoever stops the process stops consuming first. */
  async beforeApplicationShutdown(): Promise<void> {
    for (const stop of this.measuring) stop();
    await Promise.all([this.watch?.stop(), ...this.tasks.map((task) => task.stop())]);
    await this.runs.stop();
    await this.loop.stop();
    await this.relay.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
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
