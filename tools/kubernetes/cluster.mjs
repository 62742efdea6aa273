// The cluster that KUBECONFIG names, through kubectl and helm.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { run } from '../stack/docker.mjs';

export const CHART = join(ROOT, 'deploy', 'chart');
const ANSWER_TIMEOUT_MS = 30_000;
const FORWARD_TIMEOUT_MS = 30_000;
const helmCommand = () => process.env.HELM || 'helm';

/** Rejects with a SetupError if a command is missing or the cluster does not answer. */
export async function requireCluster() {
  if (!process.env.KUBECONFIG)
    throw new SetupError('KUBECONFIG is not set: name the file of a cluster for trials, or start one (kind, k3s, …).');
  await kubectl(['get', '--raw', '/readyz'], { timeoutMs: ANSWER_TIMEOUT_MS });
  await helm(['version', '--short'], { timeoutMs: ANSWER_TIMEOUT_MS });
}

export const kubectl = (args, options) => succeed('kubectl', args, options);
export const helm = (args, options) => succeed(helmCommand(), args, options);
/** The same, with the exit code instead of a rejection. */
export const tryHelm = (args, options) => run(helmCommand(), args, options);

async function succeed(command, args, options) {
  const result = await run(command, args, options).catch((error) => {
    if (error.code === 'ENOENT') throw new SetupError(`${command} is not installed.`);
    throw error;
  });
  if (result.code === 0) return result.stdout;
  throw new SetupError(`${command} ${args.slice(0, 4).join(' ')} … failed:\n${result.output.trim()}`);
}

/** Applies these objects. Through stdin, because the arguments of a process are seen by all users. */
export function apply(namespace, objects) {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  return new Promise((resolve, reject) => {
    const child = spawn('kubectl', ['-n', namespace, 'apply', '-f', '-'], { stdio: ['pipe', 'ignore', 'pipe'] });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new SetupError(`kubectl apply failed:\n${output}`))));
    child.stdin.end(JSON.stringify(list));
  });
}

/**
 * Calls `work` with the local URL of a Service's port. The connection goes to one pod, and ends with it.
 * @template T
 * @param {(url: string) => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function throughPort(namespace, service, port, work) {
  const child = spawn('kubectl', ['-n', namespace, 'port-forward', `service/${service}`, `:${port}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const timer = setTimeout(() => child.kill(), FORWARD_TIMEOUT_MS);
    let url;
    for await (const line of createInterface({ input: child.stdout })) {
      const found = /Forwarding from (127\.0\.0\.1:\d+)/.exec(line);
      if (found) {
        url = `http://${found[1]}`;
        break;
      }
    }
    clearTimeout(timer);
    if (url === undefined)
      throw Object.assign(new SetupError(`kubectl could not forward a port of ${service}.`), { code: 'unreachable' });
    // A pipe that nobody reads stops its writer.
    child.stdout.resume();
    return await work(url);
  } finally {
    child.kill();
  }
}

/** The URL of a Service's node port, at the internal address of the first node. */
export async function nodePortUrl(namespace, service) {
  const { spec } = JSON.parse(await kubectl(['-n', namespace, 'get', 'service', service, '-o', 'json']));
  const nodes = JSON.parse(await kubectl(['get', 'nodes', '-o', 'json']));
  const address = nodes.items[0].status.addresses.find(({ type }) => type === 'InternalIP').address;
  return `http://${address}:${spec.ports[0].nodePort}`;
}
