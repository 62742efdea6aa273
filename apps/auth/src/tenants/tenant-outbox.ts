import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Messages, OutboxRelay } from '@tollgate/messaging';
import type { TenantNews } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';
import { AuthDatabase } from '../database';

/** Less than who asked for the change waits. */
const TELL_DEADLINE_MS = 2_000;

/** Tells billing of the changes of tenants that were committed. */
@Injectable()
export class TenantOutbox implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly relay: OutboxRelay;

  constructor(
    database: AuthDatabase,
    private readonly messages: Messages,
  ) {
    this.relay = new OutboxRelay(database.dataSource, messages, { name: 'auth' });
  }

  /**
   * After the commit: the outbox tells it for certain, and billing is asked to act on it at once, so that it is in force when the change is answered. Never rejects: the
   * change is committed.
   */
  async tell(news: TenantNews): Promise<void> {
    this.relay.wake();
    try {
      await this.messages.request('billing.tenants.tell', news, { deadlineMs: TELL_DEADLINE_MS });
    } catch (error) {
      logger('auth').warn(
        { tenantId: news.tenantId, reason: (error as Error).message },
        'billing hears of it by topic',
      );
    }
  }

  onApplicationBootstrap(): void {
    this.relay.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.relay.stop();
  }
}
