import { Standstill } from './standstill';

/** In CI every limit is this many times as long, because a slow machine must not fail a test that only waits. */
const PATIENCE = process.env['CI'] ? 3 : 1;
const SERVED_TIMEOUT_MS = 60_000 * PATIENCE;
const SERVED_POLL_MS = 50;

/**
 * Calls `check` until it does not throw, and returns its result. After `timeoutMs`, in CI three times that, it throws
 * the last error of `check`. It waits for effects of other processes: bounded, and never a plain sleep. The limit is no
 * claim: a test that guarantees a time measures it.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs = 20 } = {},
): Promise<T> {
  const until = Date.now() + timeoutMs * PATIENCE;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() >= until) throw error;
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }
}

/**
 * Repeats the request for up to a minute, in CI three, while the answer is 503, because services that have just started
 * or are busy sometimes answer too late. Returns any other answer.
 */
export async function onceServed<T extends { status: number }>(ask: () => Promise<T>): Promise<T> {
  const until = Date.now() + SERVED_TIMEOUT_MS;
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503 || Date.now() >= until) return answer;
    await new Promise((resolve) => setTimeout(resolve, SERVED_POLL_MS));
  }
}

/** The time limit of store calls in tests of other subjects. */
export const PATIENT_CALL_MS = 10_000;

/**
 * The least of up to three measurements in a row. It stops after the first one below `enoughMs`. A busy machine delays
 * some of the measurements. Slow code is slow in all of them.
 */
export async function leastMs(enoughMs: number, measureMs: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 3 && least >= enoughMs; round++) least = Math.min(least, await measureMs());
  return least;
}

/**
 * Calls `check` until it passes. Returns the milliseconds from `fromMs` (of `performance.now()`) to the last failing
 * check, or 0 if none failed. Counts from the start of the last failing check, because a busy machine may delay its end
 * and the next check, and does not count a standstill of this process. Fails like `eventually`.
 * @param processes that the change passes one after the other. The machine keeps each waiting as it keeps this one.
 */
export async function inForceAfterMs(check: () => unknown, fromMs = performance.now(), processes = 1): Promise<number> {
  let lastMs = 0;
  const standstill = new Standstill();
  try {
    await eventually(
      async () => {
        const askedMs = Math.max(0, performance.now() - fromMs - standstill.ms * processes);
        try {
          await check();
        } catch (error) {
          lastMs = askedMs;
          throw error;
        }
      },
      { everyMs: 5 },
    );
  } finally {
    standstill.end();
  }
  return lastMs;
}
