import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';

// Jest's own, which Jest brings: resolved from there.
const fromJest = createRequire(createRequire(import.meta.url).resolve('@jest/core'));
const { default: Sequencer } = fromJest('@jest/test-sequencer');
const ROOT = join(import.meta.dirname, '..', '..');
/** Seconds that test files took on two cores; of those that take long. */
const LONGEST = JSON.parse(readFileSync(join(import.meta.dirname, 'longest.json'), 'utf8'));

/**
 * The longest test files begin first, so that no worker begins one while the others have nothing left to do. Jest does
 * so by what it remembers of a former run. A fresh checkout remembers nothing: there the table counts.
 */
export default class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? (LONGEST[relative(ROOT, test.path)] ?? 0) * 1_000;
  }
}
