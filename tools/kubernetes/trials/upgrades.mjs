// The first billed chat, and upgrades under load. Each trial returns its figures, and throws if something did not hold.
import { SetupError } from '../../setup/prepare.mjs';
import { CHART, helm, nodePortUrl, tryHelm } from '../cluster.mjs';
import { Load } from './load.mjs';
import { customer, operator, podNames, reconcile, secondsSince, underLoad, upgrade } from './release.mjs';

const FAILING_TIMEOUT = '60s';

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
    // A setting of all services.
    await upgrade(release, ['--set', 'logLevel=warn']);
    const kept = (await podNames(release)).filter((name) => before.includes(name));
    if (kept.length > 0) throw new SetupError(`The upgrade did not replace ${kept.join(' ')}.`);
    return { replaced: before.length };
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
