// Finds out whether tests that need helm (*.helm.test.ts) can run here.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { hasHelm } from '../../tools/chart/render.mjs';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns the patterns of the test files to leave out. Without helm, these are the tests that need it, and a line on
 * stderr reports it. Without it, `test/chart/manifests.test.ts` finds golden manifests that are out of date.
 * @returns {string[]}
 */
export function testsWithoutHelm() {
  if (hasHelm()) return [];
  const count = globSync('test/**/*.helm.test.ts', { cwd: ROOT }).length;
  process.stderr.write(`${count} test file (*.helm.test.ts) is left out: there is no helm.\n`);
  return ['\\.helm\\.test\\.ts$'];
}
