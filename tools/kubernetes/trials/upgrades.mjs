// The first billed chat, and upgrades under load. Each trial returns its figures, and throws if something did not hold.
import { SetupError } from '../../setup/prepare.mjs';
import { CHART, helm, tryHelm } from '../cluster.mjs';
import { customer, loadOf, podNames, proveBooks, secondsSince, served, underLoad, upgrade } from './release.mjs';

const FAILING_TIMEOUT = '60s';

/** The first billed chat through the node port, then `helm test`. */
export async function firstChat(release) {
  const caller = await customer(release);
  const one = await loadOf(release, caller, { plain: 1, streams: 1 });
  const { plain, streams } = served(await one.stop());
  const recorded = await proveBooks(release, caller, one.outcomes);
  if (recorded !== 2) throw new SetupError(`${recorded} requests are recorded, not 2.`);
  const testedMs = Date.now();
  await helm(['-n', release.namespace, 'test', release.release, '--timeout', '5m']);
  return { plain, streams, recorded, testSeconds: secondsSince(testedMs) };
}

/** An upgrade that replaces every pod under load. */
export const upgradeUnderLoad = (release) =>
  underLoad(release, async () => {
    const before = await podNames(release);
    // A setting of all services. The jobs run as hooks this time, because the stores exist.
    await upgrade(release, ['--set', 'logLevel=warn,jobs.hooks=true']);
    const kept = (await podNames(release)).filter((name) => before.includes(name));
    if (kept.length > 0) throw new SetupError(`The upgrade did not replace ${kept.join(' ')}.`);
    return { replaced: before.length };
  });

/**
 * An upgrade to a setting that metering refuses, and one to a gateway that crashes before it runs our code, as that of a
 * broken image does. Both are taken back.
 */
export const failedUpgrades = (release) =>
  underLoad(release, async () => {
    const failing = {
      metering: ['--set', 'metering.env.TOLLGATE_HEALTH_PORT=none'],
      gateway: ['--set', 'gateway.env.NODE_OPTIONS=--require=/missing.cjs'],
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
