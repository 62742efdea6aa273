// Finds out whether tests that need zsh and fish (*.shells.test.ts) can run here.
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
const SHELLS = ['zsh', 'fish'];

/**
 * Returns the patterns of the test files to leave out. Without the shells, these are the tests that need them, and a
 * line on stderr reports it.
 * @returns {string[]}
 */
export function testsWithoutShells() {
  const missing = SHELLS.filter((shell) => !existsSync(`/usr/bin/${shell}`));
  if (missing.length === 0) return [];
  const count = globSync('test/**/*.shells.test.ts', { cwd: ROOT }).length;
  process.stderr.write(
    `${count} test file (*.shells.test.ts) is left out: there is no ${missing.join(' and no ')}. ` +
      `On Debian, as root: apt-get install ${missing.join(' ')}\n`,
  );
  return ['\\.shells\\.test\\.ts$'];
}
