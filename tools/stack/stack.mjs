// stack.mjs up [--json] [--scale <service>=<number>]… | down [--volumes]: the distributed form on Docker Compose. Runs
// on Node 24, in a checkout that is compiled.
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
import { MAX_SCALE, readSettings, SCALED_SERVICES, writeSettings } from './settings.mjs';

const READY_TIMEOUT_S = 240;
const USAGE = `Usage: npm run stack [-- --json] [-- --scale gateway=4]
       npm run stack:down [-- --volumes]
  --json      when ready, print one line of JSON instead of the text
  --scale     how many of a service: gateway, auth, metering, billing
  --volumes   delete the data too
Settings are environment variables: docs/operating/settings.md.`;

const say = (line) => process.stderr.write(`${line}\n`);
const load = createRequire(import.meta.url);

async function up({ json = false, scale = [] }) {
  const wrong = scale.find((each) => !mayBeScaled(each));
  if (wrong !== undefined)
    throw new SetupError(
      `--scale ${wrong}: it must be gateway, auth, metering or billing and a number from 1 to ${MAX_SCALE}: --scale gateway=4`,
    );
  const settings = readSettings(process.env);
  // Before anything is started: what tollgate.yaml says is judged in milliseconds.
  const { readConfigFile } = load(join(ROOT, 'libs/runtime/dist/index.js'));
  const { models } = readConfigFile(settings.configFile, process.env);
  await requireDocker();
  await requireOwnData(settings);
  await requirePorts(settings);
  if (settings.secrets.tls) {
    const { makeCertificates } = await import('./certificates.mjs');
    settings.compose.TOLLGATE_TLS_ID = await makeCertificates(settings.compose.TOLLGATE_SECRETS);
  }
  writeSettings(settings, process.env);
  makeMessageKeys(settings.dataDirectory);
  if (process.env.TOLLGATE_IMAGES === 'local') {
    execFileSync(join(ROOT, 'deploy', 'images', 'build-local.sh'), { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted(signal));
  say('Building the images, and starting (the first time it takes some minutes) …');
  const started = await compose(settings, [
    'up',
    '--build',
    '--quiet-pull',
    '--wait',
    '--wait-timeout',
    String(READY_TIMEOUT_S),
    ...scale.flatMap((each) => ['--scale', each]),
  ]);
  if (started.code !== 0) {
    const log = join(settings.dataDirectory, 'stack.log');
    writeFileSync(log, started.output);
    throw new SetupError(`${await explainFailure(settings, started.output)}\nAll that Docker said: ${log}`);
  }
  await tell(settings, models, json);
}

/** `gateway=4` */
function mayBeScaled(text) {
  const [, service, count] = /^([a-z]+)=([1-9]\d?)$/.exec(text) ?? [];
  return SCALED_SERVICES.includes(service) && Number(count) <= MAX_SCALE;
}

/** Compose hears the signal of a terminal itself, and leaves what it has started. */
function interrupted(signal) {
  say('Interrupted: what was started stays. `npm run stack` goes on with it, `npm run stack:down` stops it.');
  process.exit(128 + constants.signals[signal]);
}

/** The ready lines, the demo tenant, and where the `tollgate` command finds it all. */
async function tell(settings, models, json) {
  const { createDemo, OperatorClient, readyJson, readyText } = load(join(ROOT, 'apps/cli/dist/index.js'));
  const publicUrl = await urlOf(settings, 8080);
  const operator = { url: await urlOf(settings, 8081), secret: settings.secrets.operatorSecret };
  writeFileSync(operatorFile(settings), `${JSON.stringify(operator)}\n`, { mode: 0o600 });
  const demo = settings.demo ? await createDemo(new OperatorClient(operator)) : null;
  const addresses = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl: operator.url,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: operator.secret,
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

/** The databases of an older start know its passwords only. */
async function requireOwnData({ project, secretsAreNew, compose: { TOLLGATE_SECRETS: directory } }) {
  if (!secretsAreNew) return;
  const { stdout } = await run('docker', ['volume', 'ls', '--quiet', '--filter', `name=^${project}_postgres$`]);
  if (stdout.trim() === '') return;
  throw new SetupError(
    `There are data of an earlier start (volume ${stdout.trim()}), and their passwords are not in ${directory}: ` +
      'restore that directory, choose the TOLLGATE_DATA_DIR or COMPOSE_PROJECT_NAME of then, ' +
      'or delete the data with npm run stack:down -- --volumes.',
  );
}

/** Said before anything is started. A port that this stack itself has is its own. */
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
  rmSync(operatorFile(settings), { force: true });
  say(`Stopped.${volumes ? ' Its data are deleted.' : ' The data stay: npm run stack goes on with them.'}`);
}

const COMMANDS = {
  up: [up, { json: { type: 'boolean' }, scale: { type: 'string', multiple: true } }],
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
  // What the operator can mend is said in lines; the rest is a defect, and shows where.
  const mendable = error instanceof SetupError || ['BadKeysError', 'ConfigError', 'Failure'].includes(error.name);
  process.stderr.write(`${mendable ? error.message.replace(/^(?=.)/gm, 'tollgate: ') : error.stack}\n`);
  process.exitCode = 1;
}
