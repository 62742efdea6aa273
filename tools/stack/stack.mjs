// Starts or stops the distributed form on Docker Compose. Runs on Node 24 in a compiled checkout. Usage:
// stack.mjs up [--json] [--no-build] [--scale <service>=<number>]… | down [--volumes]
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT, SetupError } from '../setup/prepare.mjs';
import { compose, explainFailure, portInUse, requireDocker, run } from './docker.mjs';
import { makeMessageKeys } from './message-keys.mjs';
import { outdatedContainers, restartOneByOne } from './restart.mjs';
import { MAX_SCALE, readSettings, SCALED_SERVICES, writeSettings } from './settings.mjs';

const READY_TIMEOUT_S = 240;
const UNTIL_READY = ['--wait', '--wait-timeout', String(READY_TIMEOUT_S)];
const USAGE = `Usage: npm run stack [-- --json] [-- --no-build] [-- --scale gateway=4]
       npm run stack:down [-- --volumes]
  --json      when ready, print one line of JSON instead of the text
  --no-build  use the images of an earlier start
  --scale     the number of replicas of gateway, auth, metering, billing or console
  --volumes   delete the data too
Settings are environment variables: docs/operating/settings.md.`;

const say = (line) => process.stderr.write(`${line}\n`);
const load = createRequire(import.meta.url);

async function up({ json = false, 'no-build': isBuilt = false, scale = [] }) {
  const wrong = scale.find((each) => !mayBeScaled(each));
  if (wrong !== undefined)
    throw new SetupError(
      `--scale ${wrong}: it must be gateway, auth, metering, billing or console and a number from 1 to ${MAX_SCALE}, ` +
        'such as --scale gateway=4',
    );
  const settings = readSettings(process.env);
  // Checks tollgate.yaml before anything is started, which takes milliseconds.
  const { readConfigFile } = load(join(ROOT, 'libs/runtime/dist/index.js'));
  const { models } = readConfigFile(settings.configFile, process.env);
  await requireDocker();
  await requireOwnData(settings);
  await requirePorts(settings);
  if (settings.secrets.tls) {
    const { makeCertificates } = await import('./certificates.mjs');
    settings.compose.TOLLGATE_TLS_ID = await makeCertificates(settings.compose.TOLLGATE_SECRETS);
  }
  // For a stack that is running already.
  if (!settings.compose.TOLLGATE_CONSOLE_URL) settings.compose.TOLLGATE_CONSOLE_URL = await consoleOrigin(settings, '');
  writeSettings(settings, process.env);
  makeMessageKeys(settings.dataDirectory);
  if (process.env.TOLLGATE_IMAGES === 'local' && !isBuilt) {
    execFileSync(join(ROOT, 'deploy', 'images', 'build-local.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted(signal));
  say(
    isBuilt
      ? 'Starting the services …'
      : 'Building the images and starting the services. The first time this takes some minutes …',
  );
  const scaled = scale.flatMap((each) => ['--scale', each]);
  const build = isBuilt ? '--no-build' : '--build';
  if ((await outdatedContainers(settings)).length === 0) await start(settings, [build, ...UNTIL_READY, ...scaled]);
  else {
    // The stores and the jobs take the new passwords. Without --wait: with a former one, a service is not ready.
    await start(settings, [build, '--detach', ...scaled]);
    say('Restarting the containers whose secrets or tollgate.yaml have changed, one after the other …');
    await restartOneByOne(settings, await outdatedContainers(settings), READY_TIMEOUT_S * 1_000);
    await start(settings, ['--no-build', ...UNTIL_READY, ...scaled]);
  }
  await tellConsole(settings, scale);
  await tell(settings, models, json);
}

async function start(settings, args) {
  const { code, output } = await compose(settings, ['up', '--quiet-pull', ...args]);
  if (code === 0) return;
  const log = join(settings.dataDirectory, 'stack.log');
  writeFileSync(log, output);
  throw new SetupError(`${await explainFailure(settings, output)}\nThe output of Docker: ${log}`);
}

/** `gateway=4` */
function mayBeScaled(text) {
  const [, service, count] = /^([a-z]+)=([1-9]\d?)$/.exec(text) ?? [];
  return SCALED_SERVICES.includes(service) && Number(count) <= MAX_SCALE;
}

/** A terminal sends its signal to Compose too, which leaves the started containers running. */
function interrupted(signal) {
  say('Interrupted. Started containers keep running. `npm run stack` continues, `npm run stack:down` stops them.');
  process.exit(128 + constants.signals[signal]);
}

/**
 * The console must know its own address, and Docker chooses the port when it starts the load balancer. So then the
 * console is started once more.
 */
async function tellConsole(settings, scale) {
  const before = settings.compose.TOLLGATE_CONSOLE_URL;
  if (settings.compose.TOLLGATE_PORT !== '0' || process.env.TOLLGATE_CONSOLE_URL) return;
  const origin = await consoleOrigin(settings, before);
  if (origin === before) return;
  settings.compose.TOLLGATE_CONSOLE_URL = origin;
  writeSettings(settings, process.env);
  const own = scale.filter((each) => each.startsWith('console=')).flatMap((each) => ['--scale', each]);
  // Not --no-deps, with which Compose creates a container that the next start finds changed.
  const args = ['up', '--no-build', ...UNTIL_READY, ...own, 'console'];
  const { code, output } = await compose(settings, args);
  if (code !== 0) throw new SetupError(await explainFailure(settings, output));
}

/** The console's origin: a passkey belongs to a name, never to an address. `otherwise`: there is no load balancer. */
async function consoleOrigin(settings, otherwise) {
  const { stdout, code } = await compose(settings, ['port', 'haproxy', '8080']);
  const [, port] = /:(\d+)$/.exec(stdout.trim()) ?? [];
  return code === 0 && port !== undefined && port !== '0' ? `http://localhost:${port}` : otherwise;
}

/** Prints the ready lines, creates the demo tenant, and writes the file that leads the `tollgate` command here. */
async function tell(settings, models, json) {
  const { createDemo, firstOperatorLink, OperatorClient, readyJson, readyText } = load(
    join(ROOT, 'apps/cli/dist/index.js'),
  );
  const publicUrl = await urlOf(settings, 8080);
  const operator = { url: await urlOf(settings, 8081), secret: settings.secrets.operatorSecret };
  writeFileSync(operatorFile(settings), `${JSON.stringify(operator)}\n`, { mode: 0o600 });
  const client = new OperatorClient(operator);
  const demo = settings.demo ? await createDemo(client) : null;
  const addresses = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl: operator.url,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: operator.secret,
    console: {
      url: `${settings.compose.TOLLGATE_CONSOLE_URL}/console`,
      firstOperatorLink: await firstOperatorLink(client, demo?.tenantId ?? null),
    },
  };
  const model = (models.find(({ kind }) => kind === 'chat') ?? models[0]).id;
  const stop = '`npm run stack:down` stops it.';
  process.stdout.write(`${json ? readyJson(addresses, demo) : readyText(addresses, demo, model, stop)}\n`);
}

const operatorFile = ({ dataDirectory }) => join(dataDirectory, 'operator.json');

async function urlOf(settings, port) {
  const { stdout, output, code } = await compose(settings, ['port', 'haproxy', String(port)]);
  const address = stdout.trim();
  if (code !== 0 || !/:\d+$/.test(address))
    throw new SetupError(`The load balancer publishes no port: ${output.trim()}`);
  return `http://${address}`;
}

/** Data of an earlier start can only be opened with its passwords. */
async function requireOwnData({ project, secretsAreNew, compose: { TOLLGATE_SECRETS: directory } }) {
  if (!secretsAreNew) return;
  const { stdout } = await run('docker', ['volume', 'ls', '--quiet', '--filter', `name=^${project}_postgres$`]);
  if (stdout.trim() === '') return;
  throw new SetupError(
    `The volume ${stdout.trim()} has data of an earlier start, but their passwords are not in ${directory}. ` +
      'Restore that directory, set the TOLLGATE_DATA_DIR or COMPOSE_PROJECT_NAME of the earlier start, ' +
      'or delete the data with npm run stack:down -- --volumes.',
  );
}

/** Checks the ports before anything is started. If this stack is running already, it has the ports itself. */
async function requirePorts(settings) {
  const own = await compose(settings, ['ps', '--quiet', 'haproxy']);
  if (own.stdout.trim() !== '') return;
  for (const port of [settings.compose.TOLLGATE_PORT, settings.compose.TOLLGATE_OPERATOR_PORT].map(Number)) {
    if (port !== 0 && !(await isFree(port))) throw new SetupError(portInUse(port, settings));
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)));
  });
}

async function down({ volumes = false }) {
  const settings = readSettings(process.env);
  await requireDocker();
  const args = ['down', '--remove-orphans', ...(volumes ? ['--volumes'] : [])];
  const { code, output } = await compose(settings, args);
  if (code !== 0) throw new SetupError(`docker compose down failed: ${output.trim().split('\n').at(-1)}`);
  await removeNetworks(settings);
  rmSync(operatorFile(settings), { force: true });
  say(`Stopped.${volumes ? ' The data are deleted.' : ' The data are kept for the next npm run stack.'}`);
}

/**
 * Removes the other networks of the project. Compose removes only those of its files, and a start with
 * TOLLGATE_TRACES_URL has one more file than a stop without it.
 */
async function removeNetworks({ project }) {
  const label = `label=com.docker.compose.project=${project}`;
  const { stdout } = await run('docker', ['network', 'ls', '--quiet', '--filter', label]);
  const left = stdout.split('\n').filter((id) => id !== '');
  if (left.length === 0) return;
  const { code, output } = await run('docker', ['network', 'rm', ...left]);
  if (code !== 0) throw new SetupError(`docker network rm failed: ${output.trim().split('\n').at(-1)}`);
}

const COMMANDS = {
  up: [up, { json: { type: 'boolean' }, 'no-build': { type: 'boolean' }, scale: { type: 'string', multiple: true } }],
  down: [down, { volumes: { type: 'boolean' } }],
};

try {
  const [command, options] = COMMANDS[process.argv[2]];
  let values;
  try {
    ({ values } = parseArgs({
      args: process.argv.slice(3),
      options: { ...options, help: { type: 'boolean', short: 'h' } },
    }));
  } catch (error) {
    throw new SetupError(`${error.message}\n${USAGE}`);
  }
  if (values.help) process.stdout.write(`${USAGE}\n`);
  else await command(values);
} catch (error) {
  // An error that the operator can fix is printed as lines, any other with its stack.
  const fixable = error instanceof SetupError || ['BadKeysError', 'ConfigError', 'Failure'].includes(error.name);
  process.stderr.write(`${fixable ? error.message.replace(/^(?=.)/gm, 'tollgate: ') : error.stack}\n`);
  process.exitCode = 1;
}
