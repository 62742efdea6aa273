// Finds out whether tests that need a browser (*.chromium.test.ts) can run here.
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
/** As in test/console/browser/chromium.ts. */
const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/**
 * Returns the patterns of the test files to leave out. Without Chromium, these are the tests that need it, and a line
 * on stderr reports it. In CI it ends the run instead.
 * @returns {string[]}
 */
export function browserTestsLeftOut() {
  if (CHROMIUM.some((path) => existsSync(path))) return [];
  const count = globSync('test/**/*.chromium.test.ts', { cwd: ROOT }).length;
  const inCi = process.env.CI === 'true';
  process.stderr.write(
    `${count} test files (*.chromium.test.ts) ${inCi ? 'cannot run' : 'are left out'}: ${CHROMIUM.join(' and ')} ` +
      'are missing. On Debian, as root: apt-get install chromium-headless-shell\n',
  );
  if (inCi) process.exit(1);
  return ['\\.chromium\\.test\\.ts$'];
}
