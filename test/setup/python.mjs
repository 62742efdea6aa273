// Finds out whether tests that need Python packages (*.python.test.ts) can run here.
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

/**
 * Returns the patterns of the test files to leave out. Without the packages, these are the tests that need them, and a
 * line on stderr reports it. In CI it ends the run instead.
 * @returns {string[]}
 */
export function pythonTestsLeftOut() {
  if (isInstalled()) return [];
  const count = globSync('test/**/*.python.test.ts', { cwd: ROOT }).length;
  const inCi = process.env.CI === 'true';
  process.stderr.write(
    `${count} test files (*.python.test.ts) ${inCi ? 'cannot run' : 'are left out'}: their Python packages are ` +
      'missing, or not those of tools/python. tools/python/install.sh installs them.\n',
  );
  if (inCi) process.exit(1);
  return ['\\.python\\.test\\.ts$'];
}

/** Whether tools/python/install.sh has installed the present requirements. It compares the same hash. */
function isInstalled() {
  const stamp = join(ROOT, '.python', 'installed');
  if (!existsSync(stamp)) return false;
  const hash = createHash('sha256');
  for (const name of globSync('tools/python/*.txt', { cwd: ROOT }).sort()) hash.update(readFileSync(join(ROOT, name)));
  return readFileSync(stamp, 'utf8').startsWith(hash.digest('hex'));
}
