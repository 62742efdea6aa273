import fc from 'fast-check';
import { setTimeout as delay } from 'node:timers/promises';
import { assertRuns } from './property-runs';

describe('a property with a minimum number of runs', () => {
  it('has the minimum of runs, even if one run takes longer than the time box', async () => {
    let runs = 0;
    const slow = fc.asyncProperty(fc.nat(), async () => {
      runs++;
      await delay(5);
    });
    await assertRuns(slow, { leastRuns: 3, mostRuns: 1_000, timeBoxMs: 1 });
    expect(runs).toBe(3);
  });

  it('does not fail if the time box ends within the first run after the minimum', async () => {
    let runs = 0;
    const slow = fc.asyncProperty(fc.nat(), async () => {
      runs++;
      await delay(runs === 1 ? 1 : 2_000);
    });
    await assertRuns(slow, { leastRuns: 1, mostRuns: 1_000, timeBoxMs: 500 });
    expect(runs).toBeLessThanOrEqual(2);
  });

  it('has more runs while the time box lasts, but never more than the maximum', async () => {
    let runs = 0;
    const quick = fc.property(fc.nat(), () => void runs++);
    await assertRuns(quick, { leastRuns: 3, mostRuns: 50, timeBoxMs: 20_000 });
    expect(runs).toBe(50);
    runs = 0;
    const endless = fc.asyncProperty(fc.nat(), async () => {
      runs++;
      await delay(1);
    });
    await assertRuns(endless, { leastRuns: 3, mostRuns: 1_000_000, timeBoxMs: 2_000 });
    expect(runs).toBeGreaterThan(3);
  });

  it.each([
    ['within the minimum', { leastRuns: 1_000 }],
    ['after the minimum', { leastRuns: 1, mostRuns: 1_000, timeBoxMs: 20_000 }],
  ])('reports a failure %s with the seed, path and case, which repeat it', async (_where, runs) => {
    const wrong = fc.property(fc.integer({ min: 0, max: 1_000 }), (n) => n < 400);
    const failure = await assertRuns(wrong, { ...runs, seed: 7 }).catch((error: unknown) => String(error));
    const [, seed, path] = /seed: (-?\d+), path: "([\d:]+)"/.exec(String(failure)) ?? [];
    expect(failure).toContain('Counterexample: [400]');
    const again = assertRuns(wrong, { leastRuns: 1, seed: Number(seed), path: path! });
    await expect(again).rejects.toThrow('Counterexample: [400]');
  });

  it('repeats only the failure that TOLLGATE_TEST_SEED and TOLLGATE_TEST_PATH name', async () => {
    const tried: number[] = [];
    const wrong = fc.property(fc.integer({ min: 0, max: 1_000_000 }), (n) => (tried.push(n), n < 400));
    const options = { leastRuns: 1, mostRuns: 1_000, timeBoxMs: 20_000, endOnFailure: true };
    const failure = String(await assertRuns(wrong, options).catch((error: unknown) => error));
    const [, seed, path] = /seed: (-?\d+), path: "([\d:]+)"/.exec(failure) ?? [];
    const case1 = tried.at(-1);
    tried.length = 0;
    Object.assign(process.env, { TOLLGATE_TEST_SEED: seed, TOLLGATE_TEST_PATH: path });
    try {
      await expect(assertRuns(wrong, options)).rejects.toThrow(`Counterexample: [${case1}]`);
    } finally {
      delete process.env['TOLLGATE_TEST_SEED'];
      delete process.env['TOLLGATE_TEST_PATH'];
    }
    expect(tried).toEqual([case1]);
  });

  it('keeps the error of the failing run as the cause', async () => {
    const thrown = new Error('as thrown');
    const wrong = fc.property(fc.nat(), () => {
      throw thrown;
    });
    await expect(assertRuns(wrong, { leastRuns: 5 })).rejects.toMatchObject({ cause: thrown });
  });

  it('fails if cases are skipped', async () => {
    const picky = fc.property(fc.nat(), () => fc.pre(false));
    await expect(assertRuns(picky, { leastRuns: 5, seed: 7 })).rejects.toThrow('seed: 7');
  });
});
