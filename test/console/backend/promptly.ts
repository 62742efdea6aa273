import { elapsedMs } from '@tollgate/testing';

const TRIES = 5;
/** A call of a deployment that has the machine for itself never takes longer. */
const QUICK_CALL_MS = 50;
/** Steps of services behind a change, each of which a busy machine delays as it delays a call. */
const STEPS = 20;

/**
 * Expects that something happens within a time. `measureMs` makes it happen, and returns how long that took. `call` is
 * a call of the same deployment: if the machine is so busy that it is not quick, the time is longer by as much for each
 * step. A busy machine delays some of the tries. Slow code is slow in all of them.
 */
export async function expectWithin(
  limitMs: number,
  measureMs: () => Promise<number>,
  call: () => Promise<unknown>,
): Promise<void> {
  const late: { tookMs: number; allowedMs: number }[] = [];
  while (late.length < TRIES) {
    const tookMs = await measureMs();
    const allowedMs = limitMs + STEPS * Math.max(0, (await elapsedMs(call)) - QUICK_CALL_MS);
    if (tookMs <= allowedMs) return;
    late.push({ tookMs, allowedMs });
  }
  expect(late).toEqual([]);
}
