import { setTimeout as sleep } from 'node:timers/promises';

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
    // eslint-disable-next-line no-restricted-syntax -- the only race against a timer: all other code calls this
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the promise settles, with any outcome, within `timeoutMs`. */
export async function settlesWithin(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return withTimeout(timeoutMs, settled).catch(() => false);
}

/** The promise's result. Rejects with the signal's reason once it is aborted; that does not stop the work itself. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
  });
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    // eslint-disable-next-line no-restricted-syntax -- not a time limit: the work or the signal, whichever comes first
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Resolves after `forMs`. By the global timer, which tests can replace by a fake one. */
export function delay(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}

/** Resolves after `forMs`, or as soon as `signal` is aborted. Never rejects. */
export async function delayUntilAborted(forMs: number, signal: AbortSignal): Promise<void> {
  await sleep(forMs, undefined, { signal }).catch(() => undefined);
}

/**
 * A delay of a waiting loop that others can end early. One wake is kept while the loop does not wait, and ends its next
 * wait. So no event between a check and a wait is lost.
 */
export class WakeableDelay {
  private pending = false;
  private resolve: (() => void) | undefined;

  wake(): void {
    this.pending = true;
    this.resolve?.();
  }

  /** Resolves when woken, after `timeoutMs` at the latest. */
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
 * The pause before attempt `attempt` + 1 (from 0). It doubles each time up to `maxMs`. A random factor between half and
 * one spreads the replicas.
 */
export function backoffMs(attempt: number, baseMs: number, maxMs: number): number {
  return Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30)) * (0.5 + Math.random() / 2);
}
