// The distributed form: the gateway on the measured core; auth, metering, billing and their servers on the other.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../setup/prepare.mjs';
import { collector, INSPECTABLE } from '../machine/inspector.mjs';
import { answered, freePort, MEASURED, REST, runNode, startNode } from '../machine/processes.mjs';
import { atEnd } from '../machine/take-down.mjs';
import { prepareContainers } from './containers.mjs';
import { redisSize, startKafka, startPostgres, startRedis } from './servers.mjs';
import { configOf, newTenant, usableHeaders } from './tollgate.mjs';

const READY_TIMEOUT_MS = 90_000;
// The flags of V8 in the images' commands.
const COLLECTIONS = ['--heap-growing-percent=60', '--v8-pool-size=1'];
const GATEWAY_HEAP = ['--max-semi-space-size=64', '--no-allocation-site-pretenuring', ...COLLECTIONS];
const WITH_DATABASE = ['auth', 'metering', 'billing'];
const mainOf = (app) => join(ROOT, 'apps', app, 'dist/main.js');
const tollgate = (args, env) => runNode(REST, [mainOf('cli'), ...args], { env });

/**
 * @param {{ url: string }} backend
 * @param {{ profiled?: string, nodeOptions?: string[], gateways?: number }} [options]  more options for the Node of one
 *   service; several gateways, which share the core and are one part
 */
export async function startDistributed(backend, { profiled, nodeOptions = [], gateways = 1 } = {}) {
  await prepareContainers();
  const began = performance.now();
  const home = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const stops = [atEnd(async () => rmSync(home, { recursive: true, force: true }))];
  const servers = await startServers(home, stops);
  const optionsOf = (app) => (app === profiled ? nodeOptions : []);
  const { processes, ...addresses } = await startServices({
    ...{ home, backend, servers, stops, optionsOf, gateways },
  });
  return {
    name: 'distributed',
    ...addresses,
    headers: await usableHeaders(addresses.url, await newTenant(addresses)),
    parts: {
      gateway: processes.gateways.map(({ pid }) => pid),
      Redis: [servers.redis.pid],
      Kafka: [servers.kafka.pid],
      metering: [processes.metering.pid],
      billing: [processes.billing.pid],
      PostgreSQL: [servers.postgres.pid],
      auth: [processes.auth.pid],
    },
    measured: 'gateway',
    memory: collector(processes.gateway),
    firstStartMs: Math.round(performance.now() - began),
    database: servers.postgres.database,
    redisSize: () => redisSize(servers.redis.urlOf('admin')),
    async stop() {
      for (const step of stops.splice(0).reverse()) await step();
    },
  };
}

/** Servers with topics and functions in them, and the message keys of the services. */
async function startServers(home, stops) {
  const started = async (server) => {
    stops.push(server.remove);
    return server;
  };
  const [redis, kafka, postgres] = await Promise.all([
    startRedis(home).then(started),
    startKafka().then(started),
    startPostgres().then(started),
  ]);
  await Promise.all([
    tollgate(['topics', 'apply', '--no-rights'], { KAFKA_BROKERS: kafka.brokers }),
    tollgate(['redis', 'load'], { REDIS_URL: redis.urlOf('functions') }),
    tollgate(['message-keys', 'create', home], {}),
  ]);
  return { redis, kafka, postgres };
}

async function startServices({ home, backend, servers, stops, optionsOf, gateways }) {
  const config = join(home, 'tollgate.yaml');
  writeFileSync(config, configOf(backend.url));
  const operatorSecret = randomBytes(32).toString('base64url');
  const processes = {};
  const environmentOf = async (app) => ({
    MALLOC_ARENA_MAX: '2',
    KAFKA_BROKERS: servers.kafka.brokers,
    REDIS_URL: servers.redis.urlOf(app),
    DATABASE_URL: servers.postgres.url,
    TOLLGATE_CONFIG: config,
    TOLLGATE_OPERATOR_SECRET: operatorSecret,
    TOLLGATE_MESSAGE_KEYS_FILE: join(home, `${app}-message-keys`),
    TOLLGATE_LAME_DUCK_SECONDS: '0',
    TOLLGATE_LOG_LEVEL: 'warn',
    TOLLGATE_HEALTH_PORT: String(await freePort()),
    TOLLGATE_PORT: String(await freePort()),
    TOLLGATE_OPERATOR_PORT: String(await freePort()),
  });
  const startService = async (app) => {
    const env = await environmentOf(app);
    if (WITH_DATABASE.includes(app)) await runNode(REST, [mainOf(app), '--migrate'], { env });
    const core = app === 'gateway' ? MEASURED : REST;
    // The options that docker-compose.yml and the image give it.
    const flags =
      app === 'gateway' ? ['--max-old-space-size=1024', ...GATEWAY_HEAP] : ['--max-old-space-size=320', ...COLLECTIONS];
    const running = startNode(core, ['--enable-source-maps', ...flags, INSPECTABLE, ...optionsOf(app), mainOf(app)], {
      env,
    });
    stops.push(running.stop);
    processes[app] = running;
    const health = `http://127.0.0.1:${env.TOLLGATE_HEALTH_PORT}`;
    await answered(
      async () => {
        const { status, dependencies } = await (await fetch(`${health}/readyz`)).json();
        if (status !== 'ok') throw new Error(`${app} is ${status}: ${JSON.stringify(dependencies)}`);
      },
      { timeoutMs: READY_TIMEOUT_MS, running },
    );
    return env;
  };
  await Promise.all(WITH_DATABASE.map(startService));
  const env = await startService('gateway');
  const urlOf = ({ TOLLGATE_PORT: port }) => `http://127.0.0.1:${port}/v1`;
  const [first, urls] = [processes.gateway, [urlOf(env)]];
  processes.gateways = [first];
  for (let count = 1; count < gateways; count++) {
    urls.push(urlOf(await startService('gateway')));
    processes.gateways.push(processes.gateway);
  }
  processes.gateway = first;
  return {
    url: urls[0],
    urls,
    operatorUrl: `http://127.0.0.1:${env.TOLLGATE_OPERATOR_PORT}`,
    operatorSecret,
    processes,
  };
}
