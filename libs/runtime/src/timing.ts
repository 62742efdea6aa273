import { setTimeout as delay } from 'node:timers/promises';

/** The promise's result. Rejects with `late` after `timeoutMs`; that does not stop the work itself. */
export async function withTimeout<T>(
  timeoutMs: number,
  work: Promise<T>,
  late: () => Error = () => new Error(`no answer within ${timeoutMs} ms`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs);
  });
  try {
    // eslint-disable-next-line no-restricted-syntax -- the one race against a timer: everybody else calls this
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the promise is settled, one way or the other, after `timeoutMs` at the most. */
export async function settlesWithin(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return withTimeout(timeoutMs, settled).catch(() => false);
}

/** Resolves after `forMs`, or as soon as `signal` is aborted. Never rejects. */
export async function delayUntilAborted(forMs: number, signal: AbortSignal): Promise<void> {
  await delay(forMs, undefined, { signal }).catch(() => undefined);
}

/**
 * A delay of one waiting loop that others can end early. A wake while the loop does not wait is kept, once, for its
 * next wait: no event between a look and a wait is lost.
 */
export class WakeableDelay {
  private pending = false;
  private resolve: (() => void) | undefined;

  wake(): void {
    this.pending = true;
    this.resolve?.();
  }

  /** Resolves when woken, after `timeoutMs` at the most. */
  async wait(timeoutMs: number): Promise<void> {
    if (!this.pending) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.resolve = resolve;
        timer = setTimeout(resolve, timeoutMs);
      });
      clearTimeout(timer);
      this.resolve = undefined;
    }
    this.pending = false;
  }
}

/**
 * The wait before try `attempt` + 1 (from 0). It doubles each time up to `maxMs`, and is random between half and the
 * whole of that, so that replicas spread.
 */
export function backoffMs(attempt: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30)) * (0.5 + Math.random() / 2);
}
