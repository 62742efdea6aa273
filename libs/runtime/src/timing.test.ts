import { backoffMs, delayUntilAborted, settlesWithin, unlessAborted, WakeableDelay, withTimeout } from './timing';

/** Longer than any test: only an event ends such a wait. */
const NEVER_MS = 2_000_000;
const SOON_MS = 1;
const never = new Promise<never>(() => {});

describe('withTimeout', () => {
  it('gives the result or the error of work that finishes in time', async () => {
    await expect(withTimeout(NEVER_MS, Promise.resolve(7))).resolves.toBe(7);
    await expect(withTimeout(NEVER_MS, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('rejects with the error of its caller when the work is late', async () => {
    await expect(withTimeout(SOON_MS, never, () => new Error('late'))).rejects.toThrow('late');
  });
});

describe('settlesWithin', () => {
  it('reports whether the work has settled, whatever its outcome', async () => {
    await expect(settlesWithin(NEVER_MS, Promise.resolve())).resolves.toBe(true);
    await expect(settlesWithin(NEVER_MS, Promise.reject(new Error('no')))).resolves.toBe(true);
    await expect(settlesWithin(SOON_MS, never)).resolves.toBe(false);
  });
});

describe('unlessAborted', () => {
  it('gives the result or the error of work that finishes before an abort', async () => {
    const { signal } = new AbortController();
    await expect(unlessAborted(signal, Promise.resolve(7))).resolves.toBe(7);
    await expect(unlessAborted(signal, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('rejects with the reason of an abort, also of one that came before', async () => {
    const stop = new AbortController();
    const waiting = unlessAborted(stop.signal, never);
    stop.abort(new Error('stopping'));
    await expect(waiting).rejects.toThrow('stopping');
    await expect(unlessAborted(stop.signal, never)).rejects.toThrow('stopping');
  });
});

describe('delayUntilAborted', () => {
  it('ends at its time, at an abort, and at once if the abort came before', async () => {
    const stop = new AbortController();
    await delayUntilAborted(SOON_MS, stop.signal);
    const waiting = delayUntilAborted(NEVER_MS, stop.signal);
    stop.abort();
    await waiting;
    await delayUntilAborted(NEVER_MS, stop.signal);
  });
});

describe('WakeableDelay', () => {
  it('ends at its time without a wake', async () => {
    await new WakeableDelay().wait(SOON_MS);
  });

  it('ends at a wake, and the next wait waits again', async () => {
    const delay = new WakeableDelay();
    const waiting = delay.wait(NEVER_MS);
    delay.wake();
    await waiting;
    await expect(settlesWithin(SOON_MS, delay.wait(NEVER_MS))).resolves.toBe(false);
    delay.wake();
  });

  it('keeps one wake for the next wait', async () => {
    const delay = new WakeableDelay();
    delay.wake();
    delay.wake();
    await delay.wait(NEVER_MS);
    await expect(settlesWithin(SOON_MS, delay.wait(NEVER_MS))).resolves.toBe(false);
    delay.wake();
  });
});

it('a backoff doubles up to its limit, with a random factor between half and one', () => {
  for (const [attempt, wholeMs] of [
    [0, 100],
    [1, 200],
    [3, 800],
    [4, 1_000],
    [1_000_000, 1_000],
  ] as const) {
    const ms = backoffMs(attempt, 100, 1_000);
    expect(ms).toBeGreaterThanOrEqual(wholeMs / 2);
    expect(ms).toBeLessThanOrEqual(wholeMs);
  }
});
