import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { logger, WakeableDelay } from '@tollgate/runtime';
import { MAX_CREDENTIALS_PER_BATCH, Projector } from './projector';

const PROJECTION_INTERVAL_MS = 250;
export const FORGET_INTERVAL_MS = 60_000;

/**
 * Projects what a crash or a failing store left behind, and lets the store forget outdated records. As the first thing
 * after the start, it refills a store that has lost its records.
 */
@Injectable()
export class ProjectionLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopped = false;
  private refilled = false;
  private forgetAtMs = 0;
  private readonly pause = new WakeableDelay();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly projector: Projector) {}

  onApplicationBootstrap(): void {
    this.projector.keepFilled();
    this.running = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    this.pause.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    let failing = false;
    while (!this.stopped) {
      try {
        await this.round();
        failing = false;
      } catch (error) {
        if (!failing)
          logger('auth').warn({ reason: (error as Error).message }, 'projecting credentials failed; retrying');
        failing = true;
      }
      if (!this.stopped) await this.pause.wait(PROJECTION_INTERVAL_MS);
    }
  }

  private async round(): Promise<void> {
    let written: number;
    do written = await this.projector.projectDue();
    while (written === MAX_CREDENTIALS_PER_BATCH && !this.stopped);
    if (!this.refilled) await this.refill();
    if (performance.now() < this.forgetAtMs) return;
    // One batch a round, so that a revocation never waits for this.
    const hasMore = await this.projector.forget();
    this.forgetAtMs = hasMore ? 0 : performance.now() + FORGET_INTERVAL_MS;
  }

  private async refill(): Promise<void> {
    const refilled = await this.projector.refillIfLost();
    if (refilled > 0)
      logger('auth').info({ records: refilled }, 'the credential store had lost its records; all were projected again');
    this.refilled = true;
  }
}
