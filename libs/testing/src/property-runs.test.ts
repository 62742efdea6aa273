import fc from 'fast-check';
import { setTimeout as delay } from 'node:timers/promises';
import { assertRuns } from './property-runs';

describe('a property with a floor of runs', () => {
  it('is run as often as the floor says, even where one run takes longer than the whole time box', async () => {
    let runs = 0;
    const slow = fc.asyncProperty(fc.nat(), async () => {
      runs++;
      await delay(5);
    });
    await assertRuns(slow, { leastRuns: 3, mostRuns: 1_000, timeBoxMs: 1 });
    expect(runs).toBe(3);
  });

  it('does not fail where the time box ends within the first run beyond the floor', async () => {
    let runs = 0;
    const slow = fc.asyncProperty(fc.nat(), async () => {
      runs++;
      await delay(runs === 1 ? 1 : 2_000);
    });
    await assertRuns(slow, { leastRuns: 1, mostRuns: 1_000, timeBoxMs: 500 });
    expect(runs).toBeLessThanOrEqual(2);
  });

  it('is run more often while the time box lasts, and never more often than the most', async () => {
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
    ['among the least', { leastRuns: 1_000 }],
    ['beyond them', { leastRuns: 1, mostRuns: 1_000, timeBoxMs: 20_000 }],
  ])('tells of a failure %s with seed, path and case, and what repeats it', async (_where, runs) => {
    const wrong = fc.property(fc.integer({ min: 0, max: 1_000 }), (n) => n < 400);
    const failure = await assertRuns(wrong, { ...runs, seed: 7 }).catch((error: unknown) => String(error));
    const [, seed, path] = /seed: (-?\d+), path: "([\d:]+)"/.exec(String(failure)) ?? [];
    expect(failure).toContain('Counterexample: [400]');
    const again = assertRuns(wrong, { leastRuns: 1, seed: Number(seed), path: path! });
    await expect(again).rejects.toThrow('Counterexample: [400]');
  });

  it('runs the failure again that TOLLGATE_TEST_SEED and TOLLGATE_TEST_PATH name, and nothing else', async () => {
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

  it('keeps what the failing run threw as the cause', async () => {
    const thrown = new Error('as thrown');
    const wrong = fc.property(fc.nat(), () => {
      throw thrown;
    });
    await expect(assertRuns(wrong, { leastRuns: 5 })).rejects.toMatchObject({ cause: thrown });
  });

  it('fails where cases are skipped instead of run', async () => {
    const picky = fc.property(fc.nat(), () => fc.pre(false));
    await expect(assertRuns(picky, { leastRuns: 5, seed: 7 })).rejects.toThrow('seed: 7');
  });
});
