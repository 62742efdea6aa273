// Finds out whether tests that need Prometheus (*.prometheus.test.ts) can run here.
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
export const PROMETHEUS = '/usr/bin/prometheus';

/**
 * Returns the patterns of the test files to leave out. Without Prometheus, these are the tests that need it, and a line
 * on stderr reports it. In CI it ends the run instead.
 * @returns {string[]}
 */
export function prometheusTestsLeftOut() {
  if (existsSync(PROMETHEUS)) return [];
  const count = globSync('test/**/*.prometheus.test.ts', { cwd: ROOT }).length;
  const inCi = process.env.CI === 'true';
  process.stderr.write(
    `${count} test file (*.prometheus.test.ts) ${inCi ? 'cannot run' : 'is left out'}: ${PROMETHEUS} is missing. ` +
      'On Debian, as root: apt-get install prometheus\n',
  );
  if (inCi) process.exit(1);
  return ['\\.prometheus\\.test\\.ts$'];
}
