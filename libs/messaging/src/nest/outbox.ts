import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { OutboxRelay } from '../outbox/outbox-relay';

/** The relay of a service's outbox as a provider: it runs as long as the application. Call `wake` after each commit. */
export class Outbox extends OutboxRelay implements OnApplicationBootstrap, BeforeApplicationShutdown {
  onApplicationBootstrap(): void {
    this.start();
  }

  /** Modules that commit import the module of this, so they have stopped. Publishes the messages that they left. */
  beforeApplicationShutdown(): Promise<void> {
    return this.stop();
  }
}
