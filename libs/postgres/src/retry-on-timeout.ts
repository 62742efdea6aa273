import { delay } from '@tollgate/runtime';

const START_TIMEOUT_MS = 5_000;
const PAUSE_MS = 50;

/**
 * For the first query of a store at the start of its process. Repeats `ask` for 5 s while it times out, and passes on
 * any other error at once. The machine or the server may be busy with other starts, and `ask` has the time limits of
 * running requests.
 */
export async function retryOnTimeout(ask: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > until || !isTimeout(error)) throw error;
      await delay(PAUSE_MS);
    }
  }
}

/** node-postgres reports it in four ways, all without a code. A store may have given it its own name. */
function isTimeout(error: unknown): boolean {
  const { message, cause } = error as Error;
  return /timeout/i.test(message) || (cause instanceof Error && isTimeout(cause));
}
