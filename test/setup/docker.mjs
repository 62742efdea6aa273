// Finds out whether tests that need a Docker engine (*.docker.test.ts) can run here, prepares them and cleans up.
import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../../tools/setup/prepare.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
const ANSWER_TIMEOUT_MS = 60_000;
const RUN_LABEL = 'tollgate.test.run';
const PROJECT_LABEL = 'com.docker.compose.project';
const TEST_PROJECT = /^tollgate-(?:[a-z]+-)*test-(\d+)$/;

/**
 * Returns the patterns of the test files to leave out. Without an engine, these are the tests that need one, and a line
 * on stderr reports it. In CI it ends the run instead.
 * @returns {string[]}
 */
export function testsLeftOut() {
  if (dockerAnswers()) return [];
  const count = globSync('{apps,libs,test}/**/*.docker.test.ts', {
    cwd: ROOT,
    exclude: (path) => /node_modules|dist/.test(path),
  }).length;
  const inCi = process.env.CI === 'true';
  process.stderr.write(
    `${count} test files (*.docker.test.ts) ${inCi ? 'cannot run' : 'are left out'}: no Docker engine answers. ` +
      'Start one. On Debian, as root, deploy/ci/docker.sh does it.\n',
  );
  if (inCi) process.exit(1);
  return ['\\.docker\\.test\\.ts$'];
}

let answered;
function dockerAnswers() {
  answered ??= ask('docker', 'version', '--format', '{{.Server.Version}}') !== undefined;
  return answered;
}

/** Makes the images that cannot be pulled, and removes the containers of killed runs. */
export function prepareDocker() {
  if (!dockerAnswers()) return;
  // Testcontainers does not read the contexts of the docker command.
  process.env.DOCKER_HOST ??= ask('docker', 'context', 'inspect', '--format', '{{.Endpoints.docker.Host}}');
  process.env.TOLLGATE_TEST_RUN = `${hostname()}/${process.pid}`;
  if (process.env.TOLLGATE_IMAGES === 'local') {
    execFileSync(join(ROOT, 'deploy', 'images', 'build-local.sh'), { stdio: ['ignore', process.stderr, 'inherit'] });
  }
  removeContainers((run) => run.startsWith(`${hostname()}/`) && !isAlive(Number(run.split('/')[1])));
  removeProjects();
}

/** Removes the containers of this run that a test file could not remove itself. */
export function cleanDocker() {
  if (dockerAnswers()) removeContainers((run) => run === process.env.TOLLGATE_TEST_RUN);
}

function removeContainers(isOver) {
  const listed =
    ask('docker', 'ps', '--all', '--filter', `label=${RUN_LABEL}`, '--format', `{{.ID}} {{.Label "${RUN_LABEL}"}}`) ??
    '';
  const over = listed
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([id, run]) => id && isOver(run ?? ''));
  if (over.length > 0) ask('docker', 'rm', '--force', '--volumes', ...over.map(([id]) => id));
}

/** The Compose projects of test processes that have ended. Their names end in the id of the process. */
function removeProjects() {
  const kinds = [
    [
      ['ps', '--all', '--format', `{{.ID}} {{.Label "${PROJECT_LABEL}"}}`],
      ['rm', '--force', '--volumes'],
    ],
    [
      ['network', 'ls', '--format', `{{.ID}} {{.Label "${PROJECT_LABEL}"}}`],
      ['network', 'rm'],
    ],
    [
      ['volume', 'ls', '--format', `{{.Name}} {{.Label "${PROJECT_LABEL}"}}`],
      ['volume', 'rm', '--force'],
    ],
  ];
  for (const [list, remove] of kinds) {
    const over = (ask('docker', ...list, '--filter', `label=${PROJECT_LABEL}`) ?? '')
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, project]) => {
        const pid = TEST_PROJECT.exec(project ?? '')?.[1];
        return pid !== undefined && !isAlive(Number(pid));
      });
    if (over.length > 0) ask('docker', ...remove, ...over.map(([id]) => id));
  }
}

/** The output of a command, or undefined if it fails. */
function ask(command, ...args) {
  try {
    return execFileSync(command, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: ANSWER_TIMEOUT_MS,
    }).trim();
  } catch {
    return undefined;
  }
}
