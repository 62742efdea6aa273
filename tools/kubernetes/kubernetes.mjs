// Installs the chart for a trial on the cluster that KUBECONFIG names, and proves what must hold there. Runs on Node 24
// in a compiled checkout. Usage: kubernetes.mjs check | install | prove | uninstall
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { goldenFile, VALUES } from '../chart/render.mjs';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { secretsDirectory } from '../stack/secrets.mjs';
import { apply, CHART, helm, kubectl, nodePortUrl, requireCluster } from './cluster.mjs';
import { secretManifests } from './secrets.mjs';
import { drained, kubeletRestarted, podsKilled, storesDeleted } from './trials/losses.mjs';
import { gatewayScales, meteringScales } from './trials/scaling.mjs';
import { leavesNothing } from './trials/uninstall.mjs';
import { failedUpgrades, firstChat, upgradeUnderLoad } from './trials/upgrades.mjs';
import { storageSettings } from './volumes.mjs';

const RELEASE = 'tollgate';
const INSTALL_TIMEOUT = '10m';
const DIRECTORY = join(ROOT, '.tollgate', 'kubernetes');
const TRIALS = {
  firstChat,
  upgradeUnderLoad,
  failedUpgrades,
  gatewayScales,
  meteringScales,
  podsKilled,
  storesDeleted,
  drained,
  kubeletRestarted,
  leavesNothing,
};
const USAGE = `Usage: npm run kubernetes [-- check | install | prove [trial…] | uninstall]
  check      let the API server check the manifests of every values file, without installing anything
  install    (the default) install the chart with its values for a trial, and print the addresses
  prove      install, then run these trials, or all: ${Object.keys(TRIALS).join(', ')}
  uninstall  remove the release; the Secrets, the volumes and the namespace stay
KUBECONFIG names the cluster. TOLLGATE_NAMESPACE (tollgate), TOLLGATE_TAG (latest) and TOLLGATE_IMAGES=local as for
npm run stack; the images must be on its nodes or in a registry (TOLLGATE_REPOSITORY, default tollgate).
TOLLGATE_KUBELET_RESTART is a shell command that restarts the kubelet. Without it, that trial is left out.`;

const say = (line) => process.stdout.write(`${line}\n`);
const namespace = () => process.env.TOLLGATE_NAMESPACE || 'tollgate';
const tag = () => process.env.TOLLGATE_TAG || 'latest';
const repository = () => process.env.TOLLGATE_REPOSITORY || 'tollgate';

/** The arguments of helm for the values of a trial. */
function values(storage) {
  const set = [`image.repository=${repository()}`, ...storage];
  if (process.env.TOLLGATE_IMAGES === 'local') {
    // The users of Debian's packages.
    const users = { postgres: 101, redis: 100, kafka: 1000 };
    for (const [store, user] of Object.entries(users))
      set.push(`devStores.${store}.image=tollgate-local/${store}:latest`, `devStores.${store}.runAsUser=${user}`);
  }
  // As a string, because a tag may have digits only.
  const image = ['--set-string', `image.tag=${tag()}`];
  return ['-f', join(CHART, 'values-dev.yaml'), ...image, ...set.flatMap((each) => ['--set', each])];
}

async function check() {
  await requireKinds();
  // A new one, so that no object exists already.
  const empty = `${namespace()}-check-${Date.now()}`;
  await kubectl(['create', 'namespace', empty]);
  try {
    for (const name of Object.keys(VALUES)) {
      const args = ['apply', '--dry-run=server', '--validate=strict', '-f', goldenFile(name)];
      const checked = (await kubectl(['-n', empty, ...args])).trim().split('\n').length;
      say(`${name}: ${checked} objects are valid`);
    }
  } finally {
    await kubectl(['delete', 'namespace', empty, '--wait=false']);
  }
}

/** Rejects if the cluster does not know a kind of the manifests. Some are defined by operators. */
async function requireKinds() {
  const files = Object.keys(VALUES).map((name) => readFileSync(goldenFile(name), 'utf8'));
  const wanted = files.flatMap((text) => [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind));
  const known = new Set(
    (await kubectl(['api-resources', '--no-headers'])).split('\n').map((line) => line.split(/\s+/).at(-1)),
  );
  const unknown = [...new Set(wanted)].filter((kind) => !known.has(kind));
  if (unknown.length > 0)
    throw new SetupError(
      `The cluster does not know ${unknown.join(', ')}. Install the definitions of the Gateway API, KEDA and the ` +
        'Prometheus operator first (docs/operating/kubernetes.md).',
    );
}

/** Installs the release. With `keepsData`, the stores have volumes, which outlive their pods. */
async function install({ keepsData = false } = {}) {
  const startedMs = Date.now();
  const names = await kubectl(['get', 'namespaces', '-o', 'name']);
  if (!names.split('\n').includes(`namespace/${namespace()}`)) await kubectl(['create', 'namespace', namespace()]);
  await apply(namespace(), secretManifests(RELEASE, DIRECTORY));
  const image = `${repository()}/tools:${tag()}`;
  const settings = values(keepsData ? await storageSettings({ namespace: namespace(), image }) : []);
  const args = ['upgrade', '--install', RELEASE, CHART, ...settings, '--wait', '--timeout', INSTALL_TIMEOUT];
  await helm(['-n', namespace(), ...args]);
  say(`Installed in ${Math.round((Date.now() - startedMs) / 1_000)} s.`);
  say(`Inference API:   ${await nodePortUrl(namespace(), `${RELEASE}-gateway`)}/v1`);
  say(`Operator API:    kubectl -n ${namespace()} port-forward svc/${RELEASE}-operator 8081`);
  say(`Operator secret: ${join(secretsDirectory(DIRECTORY), 'operator-secret')}`);
  const operatorSecret = readFileSync(join(secretsDirectory(DIRECTORY), 'operator-secret'), 'utf8').trim();
  const installed = { release: RELEASE, namespace: namespace(), directory: DIRECTORY };
  return { ...installed, values: settings, image, operatorSecret, model: 'sim-large' };
}

async function prove(names) {
  const restart = process.env.TOLLGATE_KUBELET_RESTART;
  const wanted = (names.length > 0 ? names : Object.keys(TRIALS)).filter((name) => {
    if (!Object.hasOwn(TRIALS, name)) throw new SetupError(`There is no trial "${name}".\n${USAGE}`);
    if (name !== 'kubeletRestarted' || restart) return true;
    say(`${name}: left out, because TOLLGATE_KUBELET_RESTART is not set`);
    return false;
  });
  const release = await install({ keepsData: true });
  for (const name of wanted) say(`${name}: ${JSON.stringify(await TRIALS[name](release, restart))}`);
}

async function uninstall() {
  await helm(['-n', namespace(), 'uninstall', RELEASE, '--wait', '--timeout', INSTALL_TIMEOUT]);
  say(`Uninstalled. The Secrets and volumes stay in the namespace ${namespace()}.`);
}

const COMMANDS = { check, install: () => install(), prove, uninstall };
const [command = 'install', ...rest] = process.argv.slice(2);
try {
  if (!Object.hasOwn(COMMANDS, command) || (rest.length > 0 && command !== 'prove')) throw new SetupError(USAGE);
  await requireCluster();
  await COMMANDS[command](rest);
} catch (error) {
  process.stderr.write(error instanceof SetupError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
}
