import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { logger } from '@tollgate/runtime';
import type { Poster } from './poster';

/** Backstop: finds the gathered usage of another replica that died before it could post. */
const POLL_MS = 500;
const RETRY_AFTER_ERROR_MS = 500;

/**
 * Runs the poster when something falls due: `wakeIn` after gathering, and every POLL_MS. One run at a time. An error is
 * logged and retried, because the work stays due in the database.
 */
export class PostingLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private wakeAt = Infinity;
  private running: Promise<void> | undefined;
  private stopped = true;

  constructor(
    private readonly poster: Poster,
    /** Called after the commit, with the number of tenants posted. */
    private readonly onPosted: (tenants: number) => void,
  ) {}

  onApplicationBootstrap(): void {
    this.stopped = false;
    this.wakeIn(0);
  }

  /** Runs within `ms`. */
  wakeIn(ms: number): void {
    const at = Date.now() + ms;
    if (this.stopped || at >= this.wakeAt) return;
    clearTimeout(this.timer);
    this.wakeAt = at;
    this.timer = setTimeout(() => void this.run(), ms);
  }

  /** Ends the loop, waits for the current run, and posts every whole cent that has gathered. */
  async beforeApplicationShutdown(): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
    this.onPosted(await this.poster.postDue({ early: true }));
  }

  private async run(): Promise<void> {
    this.wakeAt = Infinity;
    // A wake during a run starts the next run at once.
    if (this.running) {
      await this.running;
      return this.wakeIn(0);
    }
    this.running = this.runOnce();
    await this.running;
    this.running = undefined;
  }

  private async runOnce(): Promise<void> {
    let nextMs = POLL_MS;
    try {
      const tenants = await this.poster.postDue();
      if (tenants > 0) this.onPosted(tenants);
    } catch (error) {
      logger('billing').error({ err: error }, 'posting failed; retrying');
      nextMs = RETRY_AFTER_ERROR_MS;
    }
    this.wakeIn(nextMs);
  }
}
