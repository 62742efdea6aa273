// Runs Docker and Compose, and reports each failure in one clear line.
import { spawn } from 'node:child_process';
import { ROOT, SetupError } from '../setup/prepare.mjs';

const ANSWER_TIMEOUT_MS = 10_000;
const INSTEAD = '`npm start` needs no Docker.';

/**
 * Runs a command to its end.
 * @returns {Promise<{ code: number | null, stdout: string, output: string }>} `output` is stdout and stderr together
 */
export function run(command, args, { env = {}, timeoutMs, show = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // Not the `timeout` of spawn: if the command does not exist, that timer keeps this process alive.
      ...(timeoutMs ? { signal: AbortSignal.timeout(timeoutMs) } : {}),
    });
    const result = { code: null, stdout: '', output: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => {
      result.stdout += text;
      result.output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      result.output += text;
      if (show) process.stderr.write(text);
    });
    child.on('error', (error) => (error.name === 'AbortError' ? resolve(result) : reject(error)));
    child.on('close', (code) => resolve({ ...result, code }));
  });
}

/** Rejects with a SetupError if Docker or the engine is missing. */
export async function requireEngine(instead = INSTEAD) {
  const version = await run('docker', ['version', '--format', '{{.Server.Version}}'], {
    timeoutMs: ANSWER_TIMEOUT_MS,
  }).catch((error) => {
    if (error.code === 'ENOENT')
      throw new SetupError(`Docker is not installed: see https://docs.docker.com/engine/install. ${instead}`);
    throw error;
  });
  if (version.code !== 0) {
    const why = lastLine(version.output) || `no answer within ${ANSWER_TIMEOUT_MS / 1_000} s`;
    throw new SetupError(`The Docker engine does not answer (${why}): start it. ${instead}`);
  }
}

/** The same with Compose. */
export async function requireDocker() {
  await requireEngine();
  const compose = await run('docker', ['compose', 'version', '--short'], { timeoutMs: ANSWER_TIMEOUT_MS });
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(compose.stdout.trim()) ?? [];
  if (compose.code !== 0 || Number(major) < 2 || (Number(major) === 2 && Number(minor) < 24)) {
    throw new SetupError(
      'Docker Compose 2.24 or newer is needed, ' +
        `but ${compose.code === 0 ? `this is ${compose.stdout.trim()}` : 'it is not installed'}: ` +
        'see https://docs.docker.com/compose/install.',
    );
  }
}

/** `docker compose …` on the project of these settings. */
export const compose = ({ compose: env }, args) => run('docker', ['compose', ...args], { env });

/** Explains in one line why `docker compose up` failed. */
export async function explainFailure(settings, output) {
  const port =
    /(?:bind for|listen tcp\d?|exposing port TCP)[^\n]*?:(\d+)[^\n]*?(?:already allocated|already in use)/i.exec(
      output,
    )?.[1];
  if (port) return portInUse(Number(port), settings);
  const failed = await failedServices(settings);
  if (failed) return failed;
  if (/pull access denied|manifest unknown|failed to resolve|error pulling|no such host|x509|not found/i.test(output)) {
    return (
      `An image cannot be pulled (${lastLine(output)}). Check the network, or name another image ` +
      '(TOLLGATE_…_IMAGE). On Debian, as root, TOLLGATE_IMAGES=local builds the images of the servers.'
    );
  }
  return `docker compose up failed: ${lastLine(output)}`;
}

/** @returns {string} */
export function portInUse(port, { compose: { TOLLGATE_PORT } }) {
  const setting = port === Number(TOLLGATE_PORT) ? 'TOLLGATE_PORT' : 'TOLLGATE_OPERATOR_PORT';
  return `Port ${port} on 127.0.0.1 is in use: stop what listens there, or set ${setting} (0 = any free port).`;
}

/** The last log line of a container that ended or is not ready. */
async function failedServices(settings) {
  const { stdout } = await compose(settings, ['ps', '--all', '--format', 'json']);
  const containers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const failed = containers.filter(
    ({ State: state, ExitCode: code, Health: health }) =>
      (state === 'exited' && code !== 0) || state === 'restarting' || health === 'unhealthy' || health === 'starting',
  );
  // A job first, because the services wait for it.
  const first = failed.find(({ State: state }) => state === 'exited') ?? failed[0];
  if (!first) return undefined;
  const { stdout: logs } = await compose(settings, ['logs', '--no-log-prefix', '--tail', '50', first.Service]);
  const { output } = await run('docker', ['logs', '--tail', '50', first.Name]);
  const state = first.State === 'running' ? `is not ready (${first.Health})` : `ended with exit code ${first.ExitCode}`;
  const reason = lastLine(output) || lastLine(logs) || 'its log is empty';
  return `${first.Service} ${state}: ${reason} (docker logs ${first.Name})`;
}

const lastLine = (text) => text.trim().split('\n').at(-1)?.trim() ?? '';
