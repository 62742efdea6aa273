import type { BeforeApplicationShutdown, FactoryProvider, OnApplicationBootstrap } from '@nestjs/common';
import { logger, PeriodicTask } from '@tollgate/runtime';

/**
 * A task of billing as a provider: it runs while the service runs. The database says what is to do, so any number of
 * replicas may run the task.
 */
export class BillingTask implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task: PeriodicTask | null;

  constructor(
    name: string,
    /** Null: never. */
    everyMs: number | null,
    run: (ending: AbortSignal) => Promise<unknown>,
  ) {
    const failed = (error: unknown) => logger('billing').error({ err: error, task: name }, 'a task failed; retrying');
    this.task = everyMs === null ? null : new PeriodicTask({ run, failed, everyMs, keepsProcess: true });
  }

  onApplicationBootstrap(): void {
    this.task?.start();
  }

  /** Waits for the current run. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.task?.stop();
  }
}

/** A task as a provider. It runs as long as the application, and gets these providers of its module. */
export function taskProvider<Parts extends readonly unknown[]>(
  name: string,
  everyMs: number,
  inject: { [I in keyof Parts]: abstract new (...args: never[]) => Parts[I] },
  run: (...parts: Parts) => Promise<unknown>,
): FactoryProvider<BillingTask> {
  return {
    provide: Symbol(name),
    inject: [...inject],
    useFactory: (...parts: Parts) => new BillingTask(name, everyMs, () => run(...parts)),
  };
}
