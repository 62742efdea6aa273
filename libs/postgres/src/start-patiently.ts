import { setTimeout } from 'node:timers/promises';

const START_TIMEOUT_MS = 5_000;
const PAUSE_MS = 50;

/**
 * For what a store asks when its process starts: `ask` again as long as it times out, for 5 s in all; any other error
 * at once, as it came. A start may meet a machine, or a server, that is busy with everything else that starts; the time
 * limits inside `ask` are those of running requests.
 */
export async function startPatiently(ask: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > until || !isTimeout(error)) throw error;
      await setTimeout(PAUSE_MS);
    }
  }
}

/** node-postgres says it in four ways, all without a code; a store may have given it a name of its own. */
function isTimeout(error: unknown): boolean {
  const { message, cause } = error as Error;
  return /timeout/i.test(message) || (cause instanceof Error && isTimeout(cause));
}
