import type { BeforeApplicationShutdown, FactoryProvider, OnApplicationBootstrap } from '@nestjs/common';
import { logger } from '@tollgate/runtime';

/**
 * Runs a task repeatedly while the service runs: at once, then `everyMs` after the end of the last run. A failed run is
 * logged and retried. The database says what is to do, so any number of replicas may run the task.
 */
export class PeriodicTask implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();
  private readonly ending = new AbortController();

  constructor(
    private readonly name: string,
    /** Null: never. */
    private readonly everyMs: number | null,
    /** Resolves early when the signal is aborted, if a run takes long. */
    private readonly run: (ending: AbortSignal) => Promise<unknown>,
  ) {}

  onApplicationBootstrap(): void {
    if (this.everyMs === null) return;
    this.running = this.runOnce(this.everyMs);
  }

  /** Waits for the current run. */
  async beforeApplicationShutdown(): Promise<void> {
    this.ending.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  private async runOnce(everyMs: number): Promise<void> {
    try {
      await this.run(this.ending.signal);
    } catch (error) {
      logger('billing').error({ err: error, task: this.name }, 'a task failed; retrying');
    }
    if (!this.ending.signal.aborted) this.timer = setTimeout(() => (this.running = this.runOnce(everyMs)), everyMs);
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
