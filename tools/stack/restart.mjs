// Restarts the containers that started before one of their secrets changed, because a service reads most of its secrets
// only when it starts. Also those that have a former tollgate.yaml: if an editor replaces that file, a running
// container keeps the one that it mounted at its start. One after the other, so that the other replicas serve
// meanwhile. If a label told Compose of the change, it would stop all replicas at once, and start the first one only
// after the jobs.
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { SetupError } from '../setup/prepare.mjs';
import { compose, explainFailure, run } from './docker.mjs';

/** In the order of their restarts: each asks those before it. The stores take new passwords from the jobs. */
const SERVICES = ['functions', 'auth', 'metering', 'billing', 'console', 'gateway'];
const MOUNT_POINT = '/run/secrets';
const CONFIG_FILE = '/etc/tollgate/tollgate.yaml';
/** The services notice a change of these files by themselves. */
const READ_AGAIN = /^config-secrets$|-message-keys$/;
const POLL_MS = 500;
/** Until the load balancer, which asks every container of these itself, knows that a replica serves again. */
const NOTICE_MS = 2_000;
const BALANCED = ['console', 'gateway'];

/** The ids of running containers that have a former secret or tollgate.yaml, in the order of their restarts. */
export async function outdatedContainers(settings) {
  const { stdout: ids } = await compose(settings, ['ps', '--quiet']);
  if (ids.trim() === '') return [];
  const { stdout } = await run('docker', ['inspect', ...ids.trim().split('\n')]);
  const services = JSON.parse(stdout)
    .map((container) => ({ ...container, rank: SERVICES.indexOf(serviceOf(container)) }))
    .filter(({ rank }) => rank >= 0)
    .sort((one, other) => one.rank - other.rank);
  const config = readFileSync(settings.configFile, 'utf8');
  const outdated = await Promise.all(
    services.map(
      async (container) =>
        hasFormerSecret(container, settings.compose.TOLLGATE_SECRETS) || (await hasFormerConfig(container, config)),
    ),
  );
  return services.filter((_, index) => outdated[index]).map(({ Id: id }) => id);
}

const serviceOf = ({ Config: { Labels: labels } }) => labels['com.docker.compose.service'];

function hasFormerSecret({ Mounts: mounts, State: { StartedAt: startedAt } }, directory) {
  const names = mounts.map(({ Destination: path }) => path).filter((path) => dirname(path) === MOUNT_POINT);
  return names
    .map((path) => basename(path))
    .filter((name) => !READ_AGAIN.test(name))
    .some((name) => changedAt(join(directory, name)) > Date.parse(startedAt));
}

/**
 * Reads the file inside the container: outside, its path leads to the new file. A container that cannot be asked has
 * ended, and will mount the new file when it starts.
 */
async function hasFormerConfig({ Id: id, Mounts: mounts }, config) {
  if (!mounts.some(({ Destination: path }) => path === CONFIG_FILE)) return false;
  const { code, stdout } = await run('docker', ['exec', id, 'cat', CONFIG_FILE]);
  return code === 0 && stdout !== config;
}

/** Not the time of the content, which a file that is moved or restored brings along. */
const changedAt = (file) => statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0;

/** Restarts each container when the one before it serves again. */
export async function restartOneByOne(settings, ids, timeoutMs) {
  for (const id of ids) {
    const { code, output } = await run('docker', ['restart', id]);
    if (code !== 0) throw new SetupError(`docker restart failed: ${output.trim().split('\n').at(-1)}`);
    const end = Date.now() + timeoutMs;
    while ((await inspect(id, '.State.Health.Status')) !== 'healthy') {
      if (Date.now() > end) throw new SetupError(await explainFailure(settings, output));
      await setTimeout(POLL_MS);
    }
    if (BALANCED.includes(await inspect(id, 'index .Config.Labels "com.docker.compose.service"')))
      await setTimeout(NOTICE_MS);
  }
}

async function inspect(id, field) {
  const { stdout } = await run('docker', ['inspect', '--format', `{{${field}}}`, id]);
  return stdout.trim();
}
