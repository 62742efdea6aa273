import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';

// Resolved from Jest, because it is a dependency of Jest.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: Sequencer } = fromJest('@jest/test-sequencer');
const ROOT = join(import.meta.dirname, '..', '..');
/** The seconds that the longest test files take on two cores. */
const LONGEST = JSON.parse(readFileSync(join(import.meta.dirname, 'longest.json'), 'utf8'));

/**
 * Runs the longest test files first, so that no worker begins one when the others have finished. Jest sorts by the
 * times of an earlier run. A fresh checkout has none, so this class uses the table.
 */
export default class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? (LONGEST[relative(ROOT, test.path)] ?? 0) * 1_000;
  }
}
