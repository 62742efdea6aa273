// Redis, Kafka and PostgreSQL as containers on the host's network: no bridge and no proxy is measured with them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { isAlive, ROOT, SetupError } from '../../setup/prepare.mjs';
import { requireEngine, run } from '../../stack/docker.mjs';
import { canPin, REST } from '../machine/processes.mjs';
import { atEnd } from '../machine/take-down.mjs';

const RUN_LABEL = 'tollgate.bench.run';
const OWN_RUN = `${hostname()}/${process.pid}`;
const INSTEAD = '`npm run bench -- --form standalone` needs no Docker.';

/** Throws a SetupError with one line when there is no engine, or none on this machine; makes the local images. */
export async function prepareContainers() {
  await requireEngine(INSTEAD);
  if (process.platform !== 'linux')
    throw new SetupError(
      `The distributed form is measured on Linux alone: its parts are told apart in /proc. ${INSTEAD}`,
    );
  if (process.env.TOLLGATE_IMAGES === 'local')
    execFileSync(join(ROOT, 'deploy', 'images', 'build-local.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
  await removeLeftOver();
}

/**
 * Starts a container on the core of the rest.
 * @param {'REDIS' | 'KAFKA' | 'POSTGRES'} server
 * @param {{ command?: string[], env?: Record<string, string>, files?: Record<string, string> }} options
 *   `files`: path in the container to a file here
 * @returns {Promise<{ pid: number, logs: () => Promise<string>, remove: () => Promise<void> }>}
 */
export async function startContainer(server, { command = [], env = {}, files = {} }) {
  const image = imageOf(server);
  const { code, stdout, output } = await run('docker', [
    ...['run', '--detach', '--quiet', '--network', 'host', '--label', `${RUN_LABEL}=${OWN_RUN}`],
    ...(canPin ? ['--cpuset-cpus', String(REST)] : []),
    ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
    ...Object.entries(files).flatMap(([path, file]) => ['--volume', `${file}:${path}:ro`]),
    image,
    ...command,
  ]);
  if (code !== 0)
    throw new SetupError(
      `${image} was not started (${lastLine(output)}). Where it cannot be pulled, name another ` +
        `(TOLLGATE_${server}_IMAGE), or set TOLLGATE_IMAGES=local on Debian as root. ${INSTEAD}`,
    );
  const id = stdout.trim().split('\n').at(-1);
  const { stdout: pid } = await run('docker', ['inspect', '--format', '{{.State.Pid}}', id]);
  return {
    pid: Number(pid),
    logs: async () => (await run('docker', ['logs', '--tail', '20', id])).output,
    remove: atEnd(async () => void (await run('docker', ['rm', '--force', '--volumes', id]))),
  };
}

/** As the tests choose it. */
function imageOf(server) {
  const setting = `TOLLGATE_${server}_IMAGE`;
  const file = process.env.TOLLGATE_IMAGES === 'local' ? 'local.env' : 'official.env';
  return process.env[setting] || parseEnv(readFileSync(join(ROOT, 'deploy', 'images', file), 'utf8'))[setting];
}

/** Also one whose start was cut short. */
export function removeOwnContainers() {
  try {
    const ids = execFileSync('docker', ['ps', '--all', '--quiet', '--filter', `label=${RUN_LABEL}=${OWN_RUN}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const own = ids.toString().trim().split('\n').filter(Boolean);
    if (own.length > 0) execFileSync('docker', ['rm', '--force', '--volumes', ...own], { stdio: 'ignore' });
  } catch {
    // The next run removes them.
  }
}

/** Removes the containers of runs that were killed. */
async function removeLeftOver() {
  const format = `{{.ID}} {{.Label "${RUN_LABEL}"}}`;
  const { stdout } = await run('docker', ['ps', '--all', '--filter', `label=${RUN_LABEL}`, '--format', format]);
  for (const line of stdout.split('\n').filter(Boolean)) {
    const [id, owner = ''] = line.split(' ');
    const [host, pid] = owner.split('/');
    if (host === hostname() && !isAlive(Number(pid))) await run('docker', ['rm', '--force', '--volumes', id]);
  }
}

const lastLine = (text) => text.trim().split('\n').at(-1)?.trim() ?? '';
