import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { MeteringDataSource } from '../database';

/** Publishes the charges that were recorded. */
@Injectable()
export class ChargeOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(dataSource: MeteringDataSource, messages: Messages) {
    this.relay = new OutboxRelay(dataSource, messages, { name: 'metering' });
  }

  /** After each commit. */
  wake(): void {
    this.relay.wake();
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  /** After the modules that record: they import this one's. What they have recorded is published while messages still take it. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
