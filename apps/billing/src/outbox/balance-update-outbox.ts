import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { BillingDataSource } from '../database';

/** Publishes the balance updates and events that were committed with the books. */
@Injectable()
export class BalanceUpdateOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(dataSource: BillingDataSource, messages: Messages) {
    this.relay = new OutboxRelay(dataSource, messages, { name: 'billing' });
  }

  /** Call it after each commit. */
  wake(): void {
    this.relay.wake();
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  /** The modules that commit import this one, so they have stopped. This publishes the messages that they left. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
