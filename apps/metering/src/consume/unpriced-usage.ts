import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { logger } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';
import { ChargeOutbox } from '../publish/charge-outbox';
import { PriceVersions } from '../record/price-versions';
import { waitingFor } from '../record/rejected';
import { UsageConsumer } from './usage-consumer';

/**
 * Takes in what was quarantined as its price was not known, once it is. The sweeper sends most of it again, but not
 * what had no hold any more (an emptied store).
 */
@Injectable()
export class UnpricedUsage implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private replaying: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly consumer: UsageConsumer,
    private readonly outbox: ChargeOutbox,
    @Inject(PriceVersions) private readonly versions: PriceVersions | null,
  ) {}

  onModuleInit(): void {
    this.versions?.onNew((versions) => this.replay(versions));
  }

  /** Those of a process that ended between its look at the prices and theirs. */
  onApplicationBootstrap(): void {
    if (this.versions) this.replay(this.versions.all());
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    await this.replaying;
  }

  private replay(versions: readonly string[]): void {
    if (this.stopped) return;
    this.replaying = this.replaying.then(async () => {
      try {
        for await (const events of waitingFor(this.dataSource, versions)) await this.consumer.consume(events);
        this.outbox.wake();
      } catch (error) {
        logger('metering').error(
          { err: error },
          'usage that waited for its price was not taken in: it is at the next start',
        );
      }
    });
  }
}
