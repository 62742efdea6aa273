import fc from 'fast-check';

export interface Runs {
  /** The minimum number of runs. The time box does not limit them. */
  leastRuns: number;
  /** The maximum number of runs within the time box. The default is `leastRuns`. */
  mostRuns?: number;
  /** Counts from the start of the first run. */
  timeBoxMs?: number;
  /** The default is TOLLGATE_TEST_SEED, or else a random seed. */
  seed?: number;
  /** The path of a failure: only that case runs again. The default is TOLLGATE_TEST_PATH. */
  path?: string;
  /** Does not search for a smaller case that fails too. */
  endOnFailure?: boolean;
}

const SURROGATES = { first: 0xd800, count: 0x800 };
/**
 * Any character, as the `unit` of `fc.string`. The unit `binary` of fast-check is the same, and lists a million
 * characters at its first use in a test file, which takes a second.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES.count })
  .map((index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count));

/**
 * `fc.assert` in a time box, with a minimum number of runs. With a time box alone, a slow machine could pass without
 * any run. Fails like `fc.assert`, with the seed, the path and the case. Fails also if the property skips cases, so
 * that fewer runs than the minimum remain.
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
  // If the time box ends within the first of these runs, fast-check reports a failure despite `markInterruptAsFailure`.
  if (!further.interrupted || further.counterexample !== null) await report(further);
}

/** The seed and the path of the failure that is to run again. Its message names them. */
function replayed(): Pick<Runs, 'seed' | 'path'> {
  const { TOLLGATE_TEST_SEED: seed, TOLLGATE_TEST_PATH: path } = process.env;
  return { ...(seed ? { seed: Number(seed) } : {}), ...(path ? { path } : {}) };
}

async function report<T>(details: fc.RunDetails<T>): Promise<void> {
  if (!details.failed) return;
  throw new Error(await fc.asyncDefaultReportMessage(details), { cause: details.errorInstance });
}
