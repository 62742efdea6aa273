import fc from 'fast-check';

export interface Runs {
  /** Done however long they take, the test's own timeout apart: fewer of them prove nothing. */
  leastRuns: number;
  /**
   * More of them are done while `timeBoxMs` lasts, from the beginning of the first on. As many as the least where it is
   * not given.
   */
  mostRuns?: number;
  timeBoxMs?: number;
  /** A random one where neither it nor TOLLGATE_TEST_SEED is given. */
  seed?: number;
  /** Of a failure: only this is run again. TOLLGATE_TEST_PATH where it is not given. */
  path?: string;
  /** Does not look for a smaller case that fails, too. */
  endOnFailure?: boolean;
}

/**
 * `fc.assert` within a time box, with a floor. A box alone lets a slow machine prove nothing and say that all is well.
 * Fails as `fc.assert` does, with the seed, the path and the case; and where fewer runs were done than the least (a
 * property may skip cases).
 */
export async function assertRuns<T>(property: fc.IRawProperty<T>, runs: Runs): Promise<void> {
  const { leastRuns, mostRuns = leastRuns, timeBoxMs = 0, ...parameters } = { ...replayed(), ...runs };
  const endMs = Date.now() + timeBoxMs;
  const first = await fc.check(property, { ...parameters, numRuns: leastRuns });
  await report(first);
  if (parameters.path !== undefined) return;
  if (first.numRuns < leastRuns)
    throw new Error(`${first.numRuns} runs, at least ${leastRuns} are needed (seed ${first.seed})`);
  const leftMs = endMs - Date.now();
  if (mostRuns <= leastRuns || leftMs <= 0) return;
  const more = { seed: first.seed + 1, numRuns: mostRuns - leastRuns, interruptAfterTimeLimit: leftMs };
  const further = await fc.check(property, { ...parameters, ...more, markInterruptAsFailure: false });
  // The box may end within the first of them: fast-check calls that a failure, however it is told to take an interrupt.
  if (!further.interrupted || further.counterexample !== null) await report(further);
}

/** The failure that is to be run again, by the seed and the path in its message. */
function replayed(): Pick<Runs, 'seed' | 'path'> {
  const { TOLLGATE_TEST_SEED: seed, TOLLGATE_TEST_PATH: path } = process.env;
  return { ...(seed ? { seed: Number(seed) } : {}), ...(path ? { path } : {}) };
}

async function report<T>(details: fc.RunDetails<T>): Promise<void> {
  if (!details.failed) return;
  throw new Error(await fc.asyncDefaultReportMessage(details), { cause: details.errorInstance });
}
