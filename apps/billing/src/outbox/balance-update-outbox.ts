import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { BillingDataSource } from '../database';

/** Publishes the news and events that were committed with the books. */
@Injectable()
export class BalanceUpdateOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(dataSource: BillingDataSource, messages: Messages) {
    this.relay = new OutboxRelay(dataSource, messages, { name: 'billing' });
  }

  /** After each commit. */
  wake(): void {
    this.relay.wake();
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  /** The modules that commit import this one, so they have stopped. What they left is published here. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
