import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { MeteringDataSource } from '../database';

/** Publishes the recorded charges. */
@Injectable()
export class ChargeOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(dataSource: MeteringDataSource, messages: Messages) {
    this.relay = new OutboxRelay(dataSource, messages, { name: 'metering' });
  }

  /** Call it after each commit. */
  wake(): void {
    this.relay.wake();
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  /** The modules that record import this one, so they have stopped. This publishes the charges that they left. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
