import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';
import { PriceVersions } from '../record/price-versions';
import { waitingFor } from '../record/rejected';
import { UsageConsumer } from './usage-consumer';

/**
 * Records events that were quarantined for an unknown price once the price is known. The sweeper redelivers most of
 * them, but not those without a hold (an emptied store).
 */
@Injectable()
export class UnpricedUsage implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private replaying: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly dataSource: MeteringDataSource,
    private readonly consumer: UsageConsumer,
    private readonly outbox: Outbox,
    @Inject(PriceVersions) private readonly versions: PriceVersions | null,
  ) {}

  onModuleInit(): void {
    this.versions?.onNew((versions) => this.replay(versions));
  }

  /** Events of a process that ended before it could look at them again. */
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
          'usage that waited for its price could not be recorded; it will be recorded at the next start',
        );
      }
    });
  }
}
