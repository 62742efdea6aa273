import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { BillingDataSource } from '../database';

/** Publishes the news and events that were committed with the books. */
@Injectable()
export class NewsOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
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

  /** After the modules that commit: they import this one's. What they have committed is published while messages still take it. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
