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

  /** The modules that record import this one, so they have stopped. What they left is published here. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
