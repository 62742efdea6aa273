import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import { AuthDatabase } from '../database';

/** Publishes what changes of tenants were committed with. */
@Injectable()
export class TenantOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(database: AuthDatabase, messages: Messages) {
    this.relay = new OutboxRelay(database.dataSource, messages, { name: 'auth' });
  }

  /** There is news: call after the commit. */
  wake(): void {
    this.relay.wake();
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
