import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { Upstream } from './upstream';

const INTERVAL_MS = 1_000;

/**
 * Asks auth once a second which backends operators have drained. Without an answer the last one stays in force. A
 * gateway that has none yet treats every backend as enabled.
 */
@Injectable()
export class Drains implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.follow(),
    failed: (error) =>
      logger('gateway').debug(
        { reason: (error as Error).message },
        'asking auth for drained backends failed; retrying',
      ),
    everyMs: INTERVAL_MS,
  });
  private known = '';

  constructor(
    private readonly services: ServiceClient,
    private readonly upstream: Upstream,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  onApplicationShutdown(): void {
    void this.task.stop();
  }

  private async follow(): Promise<void> {
    const { drained } = await this.services.request('auth.backends.drained', {});
    const names = drained.map(({ backend }) => backend);
    if (names.join(' ') === this.known) return;
    this.known = names.join(' ');
    this.upstream.fleet.drainOnly(new Set(names));
    logger('gateway').info({ drained: names }, 'the drained backends have changed');
  }
}
