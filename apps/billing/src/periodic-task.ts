import type { BeforeApplicationShutdown, FactoryProvider, OnApplicationBootstrap } from '@nestjs/common';
import { logger } from '@tollgate/runtime';

/**
 * Does something again and again while the service runs: at once, then `everyMs` after the last run ended. A run that
 * fails is logged and comes again: what it is to do stands in the database, and any number of replicas may run it.
 */
export class PeriodicTask implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();
  private stopped = true;

  constructor(
    private readonly name: string,
    private readonly everyMs: number,
    private readonly run: () => Promise<unknown>,
  ) {}

  onApplicationBootstrap(): void {
    this.stopped = false;
    this.running = this.runOnce();
  }

  /** Finishes the run in hand. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private async runOnce(): Promise<void> {
    try {
      await this.run();
    } catch (error) {
      logger('billing').error({ err: error, task: this.name }, 'a task failed; it is tried again');
    }
    if (!this.stopped) this.timer = setTimeout(() => (this.running = this.runOnce()), this.everyMs);
  }
}

/** A task as a provider: it runs for as long as the application, with these of its module's providers. */
export function periodicTask<Parts extends readonly unknown[]>(
  name: string,
  everyMs: number,
  inject: { [I in keyof Parts]: abstract new (...args: never[]) => Parts[I] },
  run: (...parts: Parts) => Promise<unknown>,
): FactoryProvider<PeriodicTask> {
  return {
    provide: Symbol(name),
    inject: [...inject],
    useFactory: (...parts: Parts) => new PeriodicTask(name, everyMs, () => run(...parts)),
  };
}
