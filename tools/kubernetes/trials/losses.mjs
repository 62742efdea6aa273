// Lost pods, a restarted node, and a drain. Whatever is lost, each complete answer is recorded once and the books
// agree.
import { spawn } from 'node:child_process';
import { SetupError } from '../../setup/prepare.mjs';
import { run } from '../../stack/docker.mjs';
import { kubectl } from '../cluster.mjs';
import { podNames, readyPods, secondsSince, SERVICES, underLoad, until, upgrade } from './release.mjs';

const READY_TIMEOUT = '300s';
const EVICTION_TIMEOUT_MS = 300_000;
const RECOVERY_TIMEOUT_MS = 300_000;
/** Of what a drain says. */
const MAX_WORDS = 2_000;
const BETWEEN_ANSWERS = 100;
const STORES = ['postgres', 'redis', 'kafka'];
/** What clients may see while a gateway is lost, and while a store is away. */
const LOST_GATEWAY = /cut|socket hang up|ECONNRE|^50[234] |aborted/;
const TWO_PODS = SERVICES.flatMap((service) => ['--set', `${service}.replicas=2`]);

/** A pod of each service is killed, one service after the other. */
export async function podsKilled(release) {
  await upgrade(release, TWO_PODS);
  return underLoad(release, async (load) => {
    const seconds = {};
    for (const service of SERVICES) {
      const [victim] = await podNames(release, [service]);
      if (service === 'gateway') load.allow(LOST_GATEWAY);
      const killedMs = Date.now();
      await kubectl(['-n', release.namespace, 'delete', 'pod', victim, '--force', '--grace-period=0']);
      await until(`A new ${service}`, RECOVERY_TIMEOUT_MS, async () => (await readyPods(release, service)) === 2);
      seconds[service] = secondsSince(killedMs);
      await load.answers(BETWEEN_ANSWERS);
      load.allow(null);
    }
    return { recoveredSeconds: seconds };
  });
}

/** The pod of each store is deleted, one after the other. Its volume stays. */
export const storesDeleted = (release) =>
  underLoad(release, async (load) => {
    const seconds = {};
    for (const store of STORES) {
      load.allow(LOST_GATEWAY);
      const deletedMs = Date.now();
      await kubectl(['-n', release.namespace, 'delete', 'pod', `${release.release}-${store}-0`]);
      await rolledOut(release, 'statefulset', store);
      await load.answers(BETWEEN_ANSWERS);
      seconds[store] = secondsSince(deletedMs);
    }
    return { servedAgainSeconds: seconds };
  });

/**
 * The kubelet is restarted by `TOLLGATE_KUBELET_RESTART`, a command. A kubelet that starts takes all its pods for not
 * ready until it has probed them. If no other node has pods of a service, new connections to it are refused for a
 * moment: those of clients to the gateway, and those of a gateway to a store, which it answers with 503. Streams go on.
 */
export const kubeletRestarted = (release, command) =>
  underLoad(release, async (load) => {
    load.allow(/ECONNREFUSED|^503 /);
    const { code, output } = await run('bash', ['-c', command]);
    if (code !== 0) throw new SetupError(`The kubelet was not restarted:\n${output}`);
    await kubectl(['wait', '--for=condition=Ready', 'nodes', '--all', `--timeout=${READY_TIMEOUT}`]);
    await load.answers(BETWEEN_ANSWERS);
    load.allow(null);
    return {};
  });

/** A drain of the only node takes one pod of each service, waits for the budgets, and no request fails. */
export async function drained(release) {
  await upgrade(release, TWO_PODS);
  const node = (await kubectl(['get', 'nodes', '-o', 'name'])).trim().split('\n')[0].replace('node/', '');
  const selector = `app.kubernetes.io/instance=${release.release},app.kubernetes.io/component in (${SERVICES.join(',')})`;
  return underLoad(release, async (load) => {
    const drain = spawn('kubectl', ['drain', node, '--pod-selector', selector, '--delete-emptydir-data'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let words = '';
    drain.stderr.setEncoding('utf8').on('data', (more) => (words = `${words}${more}`.slice(-MAX_WORDS)));
    const ended = new Promise((resolve) => drain.on('exit', resolve));
    try {
      await until('An eviction', EVICTION_TIMEOUT_MS, async () => (await serving(release)).some((pods) => pods === 1));
      await load.answers(2 * BETWEEN_ANSWERS);
      const left = await serving(release);
      if (left.some((pods) => pods < 1)) throw new SetupError(`The drain left a service without a pod: ${left}`);
      if (drain.exitCode !== null) throw new SetupError(`The drain ended although no pod could move:\n${words}`);
      return { servingPods: Object.fromEntries(SERVICES.map((service, index) => [service, left[index]])) };
    } finally {
      drain.kill();
      await ended;
      await kubectl(['uncordon', node]);
      for (const service of SERVICES) await rolledOut(release, 'deployment', service);
    }
  });
}

/** Ready pods of each service. */
const serving = (release) => Promise.all(SERVICES.map((service) => readyPods(release, service)));

const rolledOut = ({ namespace, release }, kind, name) =>
  kubectl(['-n', namespace, 'rollout', 'status', `${kind}/${release}-${name}`, `--timeout=${READY_TIMEOUT}`]);
