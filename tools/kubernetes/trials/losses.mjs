// Lost pods, a restarted node, and a drain. Whatever is lost, the books say of each request what they must.
import { spawn } from 'node:child_process';
import { SetupError } from '../../setup/prepare.mjs';
import { run } from '../../stack/docker.mjs';
import { kubectl } from '../cluster.mjs';
import { underFaults } from './faults.mjs';
import { podNames, readyPods, secondsSince, SERVICES, until, upgrade } from './release.mjs';

const READY_TIMEOUT = '300s';
const EVICTION_TIMEOUT_MS = 300_000;
const RECOVERY_TIMEOUT_MS = 300_000;
/** The most characters kept of what a drain says. */
const MAX_WORDS = 2_000;
const BETWEEN_ANSWERS = 100;
const STORES = ['postgres', 'redis', 'kafka'];
/** Failures that clients may see. No other lost pod may fail a request. */
const LOST_GATEWAY = { mayFail: /cut|socket hang up|ECONNRE|^50[234] |aborted/, touchesHolds: true };
/** The one gateway is not ready while Redis is down. */
const LOST_REDIS = { mayFail: /^503 |ECONNREFUSED|overloaded_error/, touchesHolds: true };
const TWO_PODS = SERVICES.flatMap((service) => ['--set', `${service}.replicas=2`]);

/** A pod of each service is killed, one service after the other. */
export async function podsKilled(release) {
  await upgrade(release, TWO_PODS);
  return underFaults(release, async (load, suffer) => {
    const seconds = {};
    for (const service of SERVICES) {
      const [victim] = await podNames(release, [service]);
      await suffer(service === 'gateway' ? LOST_GATEWAY : {}, async () => {
        const killedMs = Date.now();
        await kubectl(['-n', release.namespace, 'delete', 'pod', victim, '--force', '--grace-period=0']);
        await until(`A new ${service}`, RECOVERY_TIMEOUT_MS, async () => (await readyPods(release, service)) === 2);
        seconds[service] = secondsSince(killedMs);
        await load.answers(BETWEEN_ANSWERS);
      });
    }
    return { recoveredSeconds: seconds };
  });
}

/** The pod of each store is deleted, one after the other. Its volume stays. */
export const storesDeleted = (release) =>
  underFaults(release, async (load, suffer) => {
    const seconds = {};
    for (const store of STORES)
      await suffer(store === 'redis' ? LOST_REDIS : {}, async () => {
        const deletedMs = Date.now();
        await kubectl(['-n', release.namespace, 'delete', 'pod', `${release.release}-${store}-0`]);
        await rolledOut(release, 'statefulset', store);
        await load.answers(BETWEEN_ANSWERS);
        seconds[store] = secondsSince(deletedMs);
        await gatewayBack(release, load);
      });
    return { servedAgainSeconds: seconds };
  });

/**
 * The kubelet is restarted by `TOLLGATE_KUBELET_RESTART`, a command. A kubelet that starts takes all its pods for not
 * ready until it has probed them. If no other node has pods of a service, new connections to it are refused for a
 * moment: those of clients to the gateway, those of a gateway to a store, which it answers with 503, and those of a
 * gateway to the model backend, which it answers with 502. Streams go on.
 */
export const kubeletRestarted = (release, command) =>
  underFaults(release, async (load, suffer) => {
    await suffer({ mayFail: /ECONNREFUSED|^503 |^502 .*"upstream_error"/ }, async () => {
      const { code, output } = await run('bash', ['-c', command]);
      if (code !== 0) throw new SetupError(`The kubelet was not restarted:\n${output}`);
      await kubectl(['wait', '--for=condition=Ready', 'nodes', '--all', `--timeout=${READY_TIMEOUT}`]);
      await load.answers(BETWEEN_ANSWERS);
      await gatewayBack(release, load);
    });
    return {};
  });

/** A drain of the only node takes one pod of each service, waits for the budgets, and no request fails. */
export async function drained(release) {
  await upgrade(release, TWO_PODS);
  const node = (await kubectl(['get', 'nodes', '-o', 'name'])).trim().split('\n')[0].replace('node/', '');
  return underFaults(release, async (load, suffer) => {
    let left;
    await suffer({}, async () => void (left = await servedWhileDrained(release, load, node)));
    return { servingPods: Object.fromEntries(SERVICES.map((service, index) => [service, left[index]])) };
  });
}

/** Drains the node as far as the budgets allow, and resolves to the pods of each service that served meanwhile. */
async function servedWhileDrained(release, load, node) {
  const services = `app.kubernetes.io/component in (${SERVICES.join(',')})`;
  const selector = `app.kubernetes.io/instance=${release.release},${services}`;
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
    return left;
  } finally {
    drain.kill();
    await ended;
    await kubectl(['uncordon', node]);
    for (const service of SERVICES) await rolledOut(release, 'deployment', service);
  }
}

/** Kept connections are served while the gateway is not ready, and new ones are refused. */
async function gatewayBack(release, load) {
  await rolledOut(release, 'deployment', 'gateway');
  await load.answers(BETWEEN_ANSWERS);
}

/** Ready pods of each service. */
const serving = (release) => Promise.all(SERVICES.map((service) => readyPods(release, service)));

const rolledOut = ({ namespace, release }, kind, name) =>
  kubectl(['-n', namespace, 'rollout', 'status', `${kind}/${release}-${name}`, `--timeout=${READY_TIMEOUT}`]);
