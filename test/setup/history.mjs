// Finds out whether tests that need the history (*.history.test.ts, *.history.docker.test.ts) can run here.
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns the patterns of the test files to leave out. Where the history lacks the former version, as in a shallow
 * clone or an archive, these are the tests that need the history, and a line on stderr reports it.
 * @returns {string[]}
 */
export function testsWithoutHistory() {
  const kept = readFileSync(join(ROOT, 'test/upgrade/former-version/checks.cjs'), 'utf8');
  const commit = /^\/\/ Of commit ([0-9a-f]{40})\. /.exec(kept)[1];
  if (spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).status === 0) return [];
  const count = globSync('test/**/*.history.{,docker.}test.ts', { cwd: ROOT }).length;
  process.stderr.write(
    `${count} test files (*.history.*) are left out: git does not have the former version here. ` +
      `In a shallow clone: git fetch --unshallow. It is commit ${commit.slice(0, 8)}.\n`,
  );
  return ['\\.history\\.(docker\\.)?test\\.ts$'];
}
