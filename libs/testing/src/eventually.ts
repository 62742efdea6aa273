const SERVED_TIMEOUT_MS = 60_000;
const SERVED_POLL_MS = 50;

/**
 * Waits until `check` returns without throwing, and returns what it returned; after `timeoutMs` its last error is
 * thrown. For effects that arrive on their own: bounded, and never a plain sleep.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = 15_000, everyMs = 20 } = {},
): Promise<T> {
  const until = Date.now() + timeoutMs;
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
 * Asks again, for up to a minute, while the answer is 503: services that have only just started, or are busy, answer
 * too late now and then. Gives any other answer.
 */
export async function onceServed<T extends { status: number }>(ask: () => Promise<T>): Promise<T> {
  const until = Date.now() + SERVED_TIMEOUT_MS;
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503 || Date.now() >= until) return answer;
    await new Promise((resolve) => setTimeout(resolve, SERVED_POLL_MS));
  }
}

/** For calls of a store whose time limit is not the subject. */
export const PATIENT_CALL_MS = 10_000;

/**
 * The least of up to three measurements of the same thing, one right after the other; none is repeated once one is
 * below `enoughMs`. A machine that does something else for a moment delays one of them, what is slow by itself is so in
 * all.
 */
export async function leastMs(enoughMs: number, measureMs: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 3 && least >= enoughMs; round++) least = Math.min(least, await measureMs());
  return least;
}

/**
 * Milliseconds from `fromMs` (of `performance.now()`; by default now) until `check` was last asked and failed, 0 when
 * it never did; it passes from then on. The moment counts at which it was asked, as on a busy machine an answer may be
 * late, and the next question too. Its last error after 15 s.
 */
export async function inForceAfterMs(check: () => unknown, fromMs = performance.now()): Promise<number> {
  let lastMs = 0;
  await eventually(
    async () => {
      const askedMs = performance.now() - fromMs;
      try {
        await check();
      } catch (error) {
        lastMs = askedMs;
        throw error;
      }
    },
    { everyMs: 5 },
  );
  return lastMs;
}
