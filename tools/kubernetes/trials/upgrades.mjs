// The first billed chat, and upgrades under load. Each trial returns its figures, and throws if something did not hold.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SetupError } from '../../setup/prepare.mjs';
import { CHART, helm, kubectl, tryHelm } from '../cluster.mjs';
import { customer, loadOf, podNames, proveBooks, secondsSince, served, underLoad, upgrade } from './release.mjs';

/** The limit of a failing upgrade, and of the way back: this factor times the time of a good upgrade just before. */
const FAILING_PER_GOOD = 1.5;
const LEAST_FAILING_S = 60;
/** The values of the trial have ordinary jobs, because at the install there are no stores yet. */
const HOOKS = 'jobs.hooks=true';

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
    await upgrade(release, ['--set', `logLevel=warn,${HOOKS}`]);
    const kept = (await podNames(release)).filter((name) => before.includes(name));
    if (kept.length > 0) throw new SetupError(`The upgrade did not replace ${kept.join(' ')}.`);
    return { replaced: before.length };
  });

/**
 * Upgrades that fail and are taken back: to a setting that metering refuses, to a gateway that crashes before it runs
 * our code, as that of a broken image does, and to two versions of tollgate.yaml. Of these, one is wrong in itself, and
 * the services would refuse the other, because it lacks a profile that keys use.
 */
export const failedUpgrades = (release) =>
  underLoad(release, async () => {
    const { config } = parse(readFileSync(join(CHART, 'values-dev.yaml'), 'utf8'));
    const changed = (from, to) => ['--set-json', `config=${JSON.stringify(config.replace(from, to))}`];
    const failing = {
      metering: { set: ['--set', 'metering.env.TOLLGATE_HEALTH_PORT=none'] },
      gateway: { set: ['--set', 'gateway.env.NODE_OPTIONS=--require=/missing.cjs'] },
      price: { set: changed("output: '200'", 'output: free'), says: 'models[0].price.output' },
      profile: { set: changed('    - id: default\n', '    - id: other\n'), says: 'profile default of plan default' },
    };
    const goodMs = Date.now();
    await upgrade(release, ['--set', HOOKS]);
    const timeout = `${Math.ceil(Math.max(LEAST_FAILING_S, FAILING_PER_GOOD * secondsSince(goodMs)))}s`;
    const seconds = {};
    for (const [name, { set, says }] of Object.entries(failing)) {
      const startedMs = Date.now();
      const args = ['upgrade', release.release, CHART, ...release.values, '--set', HOOKS, ...set, '--atomic'];
      const { code, output } = await tryHelm(['-n', release.namespace, ...args, '--timeout', timeout]);
      if (code === 0) throw new SetupError(`The upgrade "${name}" was expected to fail.`);
      if (!output.includes('has been rolled back')) throw new SetupError(`"${name}" was not taken back:\n${output}`);
      seconds[name] = secondsSince(startedMs);
      if (says === undefined) {
        // A job that fails takes the upgrade back as well, before any pod was replaced.
        if (output.includes('pre-upgrade hooks failed')) throw new SetupError(`"${name}" was not tried:\n${output}`);
        continue;
      }
      const log = await kubectl(['-n', release.namespace, 'logs', `job/${release.release}-check-config`]);
      if (!log.includes(says)) throw new SetupError(`The job does not say what is wrong with "${name}":\n${log}`);
    }
    // Removes the job that failed last.
    await upgrade(release, ['--set', HOOKS]);
    return { rolledBackSeconds: seconds };
  });
