// Installs the chart for a trial on the cluster that KUBECONFIG names, and proves what must hold there. Runs on Node 24
// in a compiled checkout. Usage: kubernetes.mjs check | install | prove | uninstall
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { goldenFile, VALUES } from '../chart/render.mjs';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { secretsDirectory } from '../stack/secrets.mjs';
import { apply, CHART, helm, kubectl, nodePortUrl, requireCluster } from './cluster.mjs';
import { secretManifests } from './secrets.mjs';
import { failedUpgrades, firstChat, upgradeUnderLoad } from './trials.mjs';

const RELEASE = 'tollgate';
const INSTALL_TIMEOUT = '10m';
const DIRECTORY = join(ROOT, '.tollgate', 'kubernetes');
const USAGE = `Usage: npm run kubernetes [-- check | install | prove | uninstall]
  check      let the API server check the manifests of every values file, without installing anything
  install    (the default) install the chart with its values for a trial, and print the addresses
  prove      install, then: a first billed chat, helm test, an upgrade under load, upgrades that fail under load
  uninstall  remove the release; the Secrets and the namespace stay
KUBECONFIG names the cluster. TOLLGATE_NAMESPACE (tollgate), TOLLGATE_TAG (latest) and TOLLGATE_IMAGES=local as for
npm run stack; the images must be on its nodes or in a registry (TOLLGATE_REPOSITORY, default tollgate).`;

const say = (line) => process.stdout.write(`${line}\n`);
const namespace = () => process.env.TOLLGATE_NAMESPACE || 'tollgate';

/** The arguments of helm for the values of a trial. */
function values() {
  const set = [`image.tag=${process.env.TOLLGATE_TAG || 'latest'}`];
  if (process.env.TOLLGATE_REPOSITORY) set.push(`image.repository=${process.env.TOLLGATE_REPOSITORY}`);
  if (process.env.TOLLGATE_IMAGES === 'local') {
    // The users of Debian's packages.
    const users = { postgres: 101, redis: 100, kafka: 1000 };
    for (const [store, user] of Object.entries(users))
      set.push(`devStores.${store}.image=tollgate-local/${store}:latest`, `devStores.${store}.runAsUser=${user}`);
  }
  return ['-f', join(CHART, 'values-dev.yaml'), ...set.flatMap((each) => ['--set', each])];
}

async function check() {
  for (const name of Object.keys(VALUES)) {
    const args = ['apply', '--dry-run=server', '--validate=strict', '-f', goldenFile(name)];
    const checked = (await kubectl(['-n', namespace(), ...args])).trim().split('\n').length;
    say(`${name}: ${checked} objects are valid`);
  }
}

async function install() {
  const startedMs = Date.now();
  const names = await kubectl(['get', 'namespaces', '-o', 'name']);
  if (!names.split('\n').includes(`namespace/${namespace()}`)) await kubectl(['create', 'namespace', namespace()]);
  await apply(namespace(), secretManifests(RELEASE, DIRECTORY));
  const args = ['upgrade', '--install', RELEASE, CHART, ...values(), '--wait', '--timeout', INSTALL_TIMEOUT];
  await helm(['-n', namespace(), ...args]);
  say(`Installed in ${Math.round((Date.now() - startedMs) / 1_000)} s.`);
  say(`Inference API:   ${await nodePortUrl(namespace(), `${RELEASE}-gateway`)}/v1`);
  say(`Operator API:    kubectl -n ${namespace()} port-forward svc/${RELEASE}-operator 8081`);
  say(`Operator secret: ${join(secretsDirectory(DIRECTORY), 'operator-secret')}`);
}

async function prove() {
  await install();
  const operatorSecret = readFileSync(join(secretsDirectory(DIRECTORY), 'operator-secret'), 'utf8').trim();
  const release = { release: RELEASE, namespace: namespace(), values: values(), operatorSecret, model: 'sim-large' };
  for (const trial of [firstChat, upgradeUnderLoad, failedUpgrades])
    say(`${trial.name}: ${JSON.stringify(await trial(release))}`);
}

async function uninstall() {
  await helm(['-n', namespace(), 'uninstall', RELEASE, '--wait', '--timeout', INSTALL_TIMEOUT]);
  say(`Uninstalled. The Secrets stay in the namespace ${namespace()}.`);
}

const COMMANDS = { check, install, prove, uninstall };
const [command = 'install', ...rest] = process.argv.slice(2);
try {
  if (!Object.hasOwn(COMMANDS, command) || rest.length > 0) throw new SetupError(USAGE);
  await requireCluster();
  await COMMANDS[command]();
} catch (error) {
  process.stderr.write(error instanceof SetupError ? `${error.message}\n` : `${error.stack}\n`);
  process.exitCode = 1;
}
