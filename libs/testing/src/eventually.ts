/**
 * Waits until `check` returns without throwing, and returns what it returned; after `timeoutMs` its last error is thrown. For effects
 * that arrive on their own: bounded, and never a plain sleep.
 */
export async function eventually<T>(check: () => T | Promise<T>, { timeoutMs = 5_000, everyMs = 20 } = {}): Promise<T> {
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
