// The trials of `npm run kubernetes -- prove`: what must hold on a real cluster. Each returns its figures, and throws if
// something did not hold.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { CHART, helm, kubectl, nodePortUrl, throughPort, tryHelm } from './cluster.mjs';
import { Load } from './load.mjs';

const CREDIT_CENTS = 1_000_000;
/** Before and after the change, so that the load has run without it too. */
const STEADY_MS = 15_000;
const RECONCILE_WAIT_MS = 120_000;
const RECONCILE_POLL_MS = 3_000;
const FAILING_TIMEOUT = '60s';
const load = createRequire(import.meta.url);

/** @typedef {{ release: string, namespace: string, values: string[], operatorSecret: string, model: string }} Release */

/** Uses the operator API. */
function operator({ release, namespace, operatorSecret }, work) {
  return throughPort(namespace, `${release}-operator`, 8081, (url) => {
    const { OperatorClient } = load(join(ROOT, 'apps/cli/dist/index.js'));
    return work(new OperatorClient({ url, secret: operatorSecret }));
  });
}

/** A tenant with credit, and its key. */
function customer(release) {
  return operator(release, async (client) => {
    const { data: tenant } = await client.post('/tenants', { name: `trial-${Date.now()}` });
    await client.post(`/tenants/${tenant.id}/credit`, { amountCents: CREDIT_CENTS, ref: 'trial' });
    const { data } = await client.post(`/tenants/${tenant.id}/keys`, { name: 'trial' });
    return { tenant: tenant.id, key: data.key };
  });
}

/** Rejects unless the books agree within a bound: usage is on its way into them for a moment. */
async function reconcile(release) {
  const end = Date.now() + RECONCILE_WAIT_MS;
  for (;;) {
    const { data } = await operator(release, (client) => client.post('/reconcile', {}, RECONCILE_WAIT_MS));
    if (data.ok && data.settledHolds === 0) return;
    if (Date.now() > end) throw new SetupError(`The books differ: ${JSON.stringify(data)}`);
    await setTimeout(RECONCILE_POLL_MS);
  }
}

/** The first billed chat through the node port, then `helm test`. */
export async function firstChat(release) {
  const { tenant, key } = await customer(release);
  const url = await nodePortUrl(release.namespace, `${release.release}-gateway`);
  const one = new Load({ url, key, model: release.model, plain: 1, streams: 1 });
  const { failed, failures, plain, streams } = await one.stop();
  if (failed > 0) throw new SetupError(`The first chats failed:\n${failures.join('\n')}`);
  await reconcile(release);
  const { data } = await operator(release, (client) => client.get(`/tenants/${tenant}/usage`));
  const testedMs = Date.now();
  await helm(['-n', release.namespace, 'test', release.release, '--timeout', '5m']);
  return { plain, streams, recorded: data.totals.requests, testSeconds: secondsSince(testedMs) };
}

/** An upgrade that replaces every pod under load. */
export const upgradeUnderLoad = (release) =>
  underLoad(release, async () => {
    const before = await podNames(release);
    // A setting of all four services.
    const changed = ['--set', 'logLevel=warn'];
    const args = ['upgrade', release.release, CHART, ...release.values, ...changed];
    await helm(['-n', release.namespace, ...args, '--wait', '--timeout', '10m']);
    const kept = (await podNames(release)).filter((name) => before.includes(name));
    return { replaced: before.length - kept.length, of: before.length };
  });

/** Upgrades to settings with which metering, and then the gateway, crash at their start. Both are taken back. */
export const failedUpgrades = (release) =>
  underLoad(release, async () => {
    const failing = {
      metering: ['--set', 'metering.env.TOLLGATE_HEALTH_PORT=none'],
      gateway: ['--set', 'gateway.env.TOLLGATE_WORKERS=none'],
    };
    const seconds = {};
    for (const [name, set] of Object.entries(failing)) {
      const startedMs = Date.now();
      const args = ['upgrade', release.release, CHART, ...release.values, ...set, '--atomic'];
      const { code, output } = await tryHelm(['-n', release.namespace, ...args, '--timeout', FAILING_TIMEOUT]);
      if (code === 0) throw new SetupError(`The upgrade "${name}" was expected to fail.`);
      if (!output.includes('has been rolled back')) throw new SetupError(`"${name}" was not taken back:\n${output}`);
      seconds[name] = secondsSince(startedMs);
    }
    return { rolledBackSeconds: seconds };
  });

/** Runs `change` under load. Rejects if a request failed, a stream was cut, or the books differ afterwards. */
async function underLoad(release, change) {
  const { key } = await customer(release);
  const url = await nodePortUrl(release.namespace, `${release.release}-gateway`);
  const running = new Load({ url, key, model: release.model, plain: 4, streams: 6 });
  let changed, counts;
  const startedMs = Date.now();
  try {
    await setTimeout(STEADY_MS);
    changed = await change();
    changed.changeSeconds = secondsSince(startedMs + STEADY_MS);
    await setTimeout(STEADY_MS);
  } finally {
    counts = await running.stop();
  }
  const { failures, ...numbers } = counts;
  if (numbers.failed > 0)
    throw new SetupError(
      `${numbers.failed} requests failed, ${numbers.plain + numbers.streams} did not:\n${failures.join('\n')}`,
    );
  await reconcile(release);
  return { ...numbers, ...changed };
}

async function podNames({ namespace, release }) {
  const selector = `app.kubernetes.io/instance=${release},app.kubernetes.io/component in (gateway,auth,metering,billing,console)`;
  const { items } = JSON.parse(await kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json']));
  return items.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name);
}

const secondsSince = (ms) => Math.round((Date.now() - ms) / 100) / 10;
