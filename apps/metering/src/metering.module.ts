import { AdmissionStore } from '@tollgate/admission';
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
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { logger, type ConfigSource } from '@tollgate/runtime';
import { DataSource } from 'typeorm';
import { compareBackends } from './backends/compare';
import { driftRatio, METRIC_HOURS, readings } from './backends/drift-metric';
import { enginesInForce } from './backends/engines';
import { EngineSampler } from './backends/sampler';
import { recordUnbilled } from './backends/unbilled';
import { openEvents } from './consume/metrics';
import { UsageConsumer } from './consume/usage-consumer';
import { openMeteringDatabase } from './database';
import { PriceVersions } from './record/price-versions';
import type { Prices } from './price/prices';
import { EventRanges } from './query/event-ranges';
import { MonthSpent } from './query/month-spent';
import { recordedEvents } from './query/recorded-events';
import { RollUpAudit } from './query/roll-up-audit';
import { UsageQueries } from './query/usage-query';
import { Partitions } from './record/partitions';
import { auditRejected, openRejected, waitingFor } from './record/rejected';
import { DEFAULT_CONFIRM_AFTER_MS, DEFAULT_SWEEP_INTERVAL_MS, Sweeper } from './sweep/sweeper';

export interface MeteringOptions {
  databaseUrl: string;
  /** How often the admission store is asked for lost usage. */
  sweepIntervalMs?: number;
  /** A settled hold that the ledger has not confirmed for so long is sent again. */
  confirmAfterMs?: number;
  /** The configuration, which says what models cost and where the engines' counters are; absent: only prices that were kept are known, and no engine is sampled. */
  config?: ConfigSource;
  /** Absent: those that the configuration has and had. */
  prices?: Prices;
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string | undefined;
}

const METERING_OPTIONS = Symbol('METERING_OPTIONS');

/** Own class, so that in one process with other services each gets its own data source. */
export class MeteringDataSource extends DataSource {}

/** Connects metering with the messages, and both with the process's life. */
@Injectable()
class MeteringService
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  private readonly relay: OutboxRelay;
  private readonly partitions: Partitions;
  private readonly sweeper: Sweeper;
  private readonly sampler: EngineSampler | null;
  private readonly stopMetrics: readonly (() => void)[];
  private readonly versions: PriceVersions | null;
  private readonly consumer: UsageConsumer;
  private replaying: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly messages: Messages,
    admission: AdmissionStore,
    @Inject(METERING_OPTIONS) options: MeteringOptions,
  ) {
    this.relay = new OutboxRelay(dataSource, messages, { name: 'metering' });
    this.partitions = new Partitions(dataSource);
    this.sweeper = new Sweeper(admission, messages, {
      sweepIntervalMs: options.sweepIntervalMs ?? DEFAULT_SWEEP_INTERVAL_MS,
      confirmAfterMs: options.confirmAfterMs ?? DEFAULT_CONFIRM_AFTER_MS,
    });
    const { config, simulatorUrl } = options;
    this.sampler = config
      ? new EngineSampler(
          dataSource,
          enginesInForce(() => config.current, simulatorUrl),
        )
      : null;
    this.versions = options.prices ? null : new PriceVersions(dataSource, config);
    this.consumer = new UsageConsumer(dataSource, options.prices ?? this.versions!);
    const stopDrift = driftRatio.from(async () => {
      const { data } = await compareBackends(dataSource, { hours: METRIC_HOURS });
      return readings(data);
    });
    const stopOpen = openEvents.from(async () => [{ labels: {}, value: await openRejected(dataSource) }]);
    this.stopMetrics = [stopDrift, stopOpen];
  }

  async onModuleInit(): Promise<void> {
    const queries = new UsageQueries(this.dataSource);
    const ranges = new EventRanges(this.dataSource);
    const rollUps = new RollUpAudit(this.dataSource);
    const spent = new MonthSpent(this.dataSource);
    this.messages.consume('usage-events', 'metering', async (batch) => {
      await this.consumer.consume(batch);
      this.relay.wake();
    });
    this.messages.handle('metering.usage.query', (query) => queries.query(query));
    this.messages.handle('metering.spent', (request) => spent.page(request));
    this.messages.handle('metering.usage.events', (request) => recordedEvents(this.dataSource, request));
    this.messages.handle('metering.events.digest', (range) => ranges.digest(range));
    this.messages.handle('metering.events.list', (range) => ranges.list(range));
    this.messages.handle('metering.rollups.audit', (from) => rollUps.page(from));
    this.messages.handle('metering.backends.unbilled', (report) => recordUnbilled(this.dataSource, report));
    this.messages.handle('metering.backends.compare', (request) => compareBackends(this.dataSource, request));
    this.messages.handle('metering.rejected.audit', () => auditRejected(this.dataSource));
    await this.partitions.start();
    await this.versions?.start();
    this.versions?.onNew((versions) => this.replay(versions));
  }

  onApplicationBootstrap(): void {
    this.relay.start();
    this.sweeper.start();
    this.sampler?.start();
    // Those of a process that ended between its look at the prices and theirs.
    if (this.versions) this.replay(this.versions.all());
  }

  /** Takes in what was set aside as its price was not known. The sweeper sends most of it again, but not what had no hold any more (an emptied store). */
  private replay(versions: readonly string[]): void {
    this.replaying = this.replaying.then(async () => {
      try {
        for await (const events of waitingFor(this.dataSource, versions)) await this.consumer.consume(events);
        this.relay.wake();
      } catch (error) {
        logger('metering').error(
          { err: error },
          'usage that waited for its price was not taken in: it is at the next start',
        );
      }
    });
  }

  /** Charges that are recorded are published while messages still take them; whoever stops the process stops consuming first. */
  async beforeApplicationShutdown(): Promise<void> {
    for (const stop of this.stopMetrics) stop();
    await Promise.all([this.sweeper.stop(), this.sampler?.stop(), this.partitions.stop(), this.versions?.stop()]);
    await this.replaying;
    await this.relay.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }
}

@Module({})
export class MeteringModule {
  static register(options: MeteringOptions): DynamicModule {
    return {
      module: MeteringModule,
      providers: [
        { provide: METERING_OPTIONS, useValue: options },
        { provide: MeteringDataSource, useFactory: () => openMeteringDatabase(options.databaseUrl) },
        MeteringService,
      ],
    };
  }
}
