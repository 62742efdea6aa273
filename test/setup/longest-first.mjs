import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';

// Resolved from Jest, because it is a dependency of Jest.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: Sequencer } = fromJest('@jest/test-sequencer');
const ROOT = join(import.meta.dirname, '..', '..');
/** The seconds that the longest test files take on two cores. */
const LONGEST = JSON.parse(readFileSync(join(import.meta.dirname, 'longest.json'), 'utf8'));
/** The time of a file that the table does not have. */
const OTHER_SECONDS = 2;
/** Files that mostly wait for servers in containers. */
const WAITING = /\.docker\.test\.ts$/;

/**
 * Runs the longest test files first, so that no worker begins one when the others have finished. Jest sorts by the
 * times of an earlier run. A fresh checkout has none, so this class uses the table.
 *
 * Some files of a project wait for servers, and the others work. It always runs both kinds, in the proportion of their
 * times. Otherwise the longest, which wait, would leave processors idle, and the others would compete for them
 * afterwards.
 */
export default class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? (LONGEST[relative(ROOT, test.path)] ?? OTHER_SECONDS) * 1_000;
  }

  sort(tests) {
    const kinds = Map.groupBy(super.sort(tests), ({ path, context }) => `${context.config.id} ${WAITING.test(path)}`);
    return [...kinds.values()]
      .flatMap(withPlaces)
      .sort((a, b) => a.place - b.place)
      .map(({ test }) => test);
  }
}

/** The place of each file: the share of the time of these files that is before it. */
function withPlaces(tests) {
  const wholeMs = tests.reduce((sum, { duration }) => sum + duration, 0);
  let beforeMs = 0;
  return tests.map((test) => {
    const place = beforeMs / wholeMs;
    beforeMs += test.duration;
    return { test, place };
  });
}
