import { logger, PeriodicTask } from '@tollgate/runtime';

/**
 * Runs a task of billing until the returned function is called, which waits for the current run. The database says what
 * is due, so any number of replicas may run the task.
 */
export function runTask(
  name: string,
  everyMs: number,
  run: (ending: AbortSignal) => Promise<unknown>,
): () => Promise<void> {
  const failed = (error: unknown) => logger('billing').error({ err: error, task: name }, 'a task failed; retrying');
  const task = new PeriodicTask({ run, failed, everyMs, keepsProcess: true });
  task.start();
  return () => task.stop();
}
