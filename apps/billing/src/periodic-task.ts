import type { BeforeApplicationShutdown, FactoryProvider, OnApplicationBootstrap } from '@nestjs/common';
import { logger } from '@tollgate/runtime';

/**
 * Runs a task repeatedly while the service runs: at once, then `everyMs` after the end of the last run. A failed run is
 * logged and retried. The database says what is to do, so any number of replicas may run the task.
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

  /** Waits for the current run. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private async runOnce(): Promise<void> {
    try {
      await this.run();
    } catch (error) {
      logger('billing').error({ err: error, task: this.name }, 'a task failed; it will be retried');
    }
    if (!this.stopped) this.timer = setTimeout(() => (this.running = this.runOnce()), this.everyMs);
  }
}

/** A task as a provider. It runs as long as the application, and gets these providers of its module. */
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
