/**
 * Waits until `check` returns without throwing, and returns what it returned; after `timeoutMs` its last error is thrown. For effects
 * that arrive on their own: bounded, and never a plain sleep.
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
 * Milliseconds from `fromMs` (of `performance.now()`; by default now) until `check` was last asked and failed, 0 when it never did; it passes from then on. The moment counts at which it was asked, as
 * on a busy machine an answer may be late, and the next question too. Its last error after 15 s.
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
