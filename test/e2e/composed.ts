import { eventually, freePort } from '@tollgate/testing';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { call, type Database, type Deployment, type Ready } from './deployment';
import { connected, everyRow, writeConfig } from './fixtures';

const ROOT = resolve(__dirname, '../..');
/** Includes building the images. */
const START_TIMEOUT_MS = 420_000;
const TEST_TIMEOUT_MS = 600_000;
/** Services end until Kafka is back, and Docker waits longer before each restart. A killed Kafka needs 30 s. */
const READY_TIMEOUT_MS = 120_000;
/** The looks of one process at a server's port, ten a second. Starting a process in a container takes 55 ms of work. */
const LOOKS = 100;
/**
 * A container gets another port when it starts again. Asking the engine takes 20 ms of processor time, which starting
 * services need.
 */
const ASK_PORT_EVERY_MS = 1_000;
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const SHOWN_CHARS = 2_000;
/** Prints all messages of all topics: of each partition those before its end at this moment. */
const READ_ALL = `
const { Kafka, logLevel } = require('kafkajs');
const kafka = new Kafka({ brokers: ['127.0.0.1:9091'], logLevel: logLevel.ERROR });
(async () => {
  const admin = kafka.admin();
  await admin.connect();
  const topics = (await admin.listTopics()).filter((topic) => !topic.startsWith('__'));
  const ends = new Map();
  for (const topic of topics) {
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic))
      if (low !== high) ends.set(topic + ' ' + partition, Number(high));
  }
  await admin.disconnect();
  const consumer = kafka.consumer({ groupId: 'reader-' + Date.now() });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await new Promise((done) => consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch }) => {
      for (const { key, value, headers } of batch.messages) {
        const named = Object.entries(headers).map(([name, text]) => name + ':' + text);
        console.log([batch.topic, ...named, key, value].join('\\t'));
      }
      const place = batch.topic + ' ' + batch.partition;
      if (Number(batch.lastOffset()) + 1 >= ends.get(place)) ends.delete(place);
      if (ends.size === 0) done();
    },
  }));
  await consumer.disconnect();
})();`;

const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'] as const;
export type Service = (typeof SERVICES)[number];
const PORTS = { postgres: 5432, redis: 6379, kafka: 9092 };
export type Server = keyof typeof PORTS;

/**
 * The composed form: `npm run stack` with its own project and ports, and two replicas of each service but auth. Started
 * before the tests of the calling file, and removed after them.
 */
export function useComposed(env: Record<string, string> = {}): ComposedDeployment {
  jest.setTimeout(TEST_TIMEOUT_MS);
  const composed = new ComposedDeployment(env);
  beforeAll(() => composed.start(), START_TIMEOUT_MS);
  afterAll(() => composed.remove(), START_TIMEOUT_MS);
  return composed;
}

export class ComposedDeployment implements Deployment {
  readonly project = `tollgate-test-${process.pid}`;
  readonly database: Database = (work) => {
    const password = this.secret('postgres-password');
    const port = Number(this.env['TOLLGATE_TEST_POSTGRES_PORT']);
    const authority = join(this.directory, 'secrets', 'tls-ca');
    const ssl = this.env['TOLLGATE_STACK_TLS'] === 'true' && { ca: readFileSync(authority), servername: 'postgres' };
    return connected({ host: '127.0.0.1', port, user: 'postgres', password, database: 'tollgate', ssl }, work);
  };
  private readonly directory = mkdtempSync(join(tmpdir(), 'tollgate-composed-'));
  private printed: Ready | undefined;
  private demo: Ready['demo'];
  private ofGateways: Ready[] = [];
  private env: Record<string, string>;

  constructor(env: Record<string, string>) {
    this.env = {
      COMPOSE_PROJECT_NAME: this.project,
      COMPOSE_FILE: [join(ROOT, 'docker-compose.yml'), join(__dirname, 'composed.yml')].join(delimiter),
      // The images of this checkout, not of another one on the same machine.
      TOLLGATE_TAG: `test-${createHash('sha256').update(ROOT).digest('hex').slice(0, 8)}`,
      TOLLGATE_DATA_DIR: this.directory,
      TOLLGATE_CONFIG: writeConfig(this.directory),
      ...env,
    };
  }

  get ready(): Ready {
    if (!this.printed) throw new Error('not started: it runs from beforeAll to afterAll');
    return { ...this.printed, ...(this.demo ? { demo: this.demo } : {}) };
  }

  get gateways(): readonly Ready[] {
    return this.ofGateways;
  }

  async start(): Promise<Ready> {
    // These ports stay the same through restarts, unlike those that Docker chooses.
    for (const port of ['TOLLGATE_TEST_POSTGRES_PORT', 'TOLLGATE_PORT', 'TOLLGATE_OPERATOR_PORT'])
      this.env[port] ??= String(await freePort());
    const scale = ['--scale', 'metering=2', '--scale', 'billing=2'];
    const build = this.printed ? ['--no-build'] : [];
    const stdout = await this.run('node', [join(ROOT, 'tools/stack/stack.mjs'), 'up', '--json', ...build, ...scale]);
    const ready = JSON.parse(stdout) as Ready;
    this.printed = ready;
    this.demo ??= ready.demo;
    await this.findGateways();
    return ready;
  }

  /** The addresses of the gateways. Their ports change with each start. */
  private async findGateways(): Promise<void> {
    this.ofGateways = await Promise.all(
      (await this.containers('gateway')).map(async (name) => {
        const { operatorSecret, docsUrl } = this.ready;
        const [publicUrl, operatorUrl] = await Promise.all([this.urlOf(name, 8080), this.urlOf(name, 8081)]);
        return {
          inferenceUrl: `${publicUrl}/v1`,
          managementUrl: `${publicUrl}/_api/v1`,
          operatorUrl,
          docsUrl,
          operatorSecret,
          metricsToken: this.secret('metrics-token'),
        };
      }),
    );
  }

  async stop(): Promise<void> {
    await this.compose('stop');
    for (const service of SERVICES) {
      for (const name of await this.containers(service)) {
        const code = await this.exitCode(name);
        if (code !== 0) throw new Error(`${name} ended with ${code}`);
      }
    }
  }

  async kill(servers: 'servers live on' | 'servers end'): Promise<void> {
    const names = servers === 'servers end' ? [...SERVICES, 'redis', 'kafka', 'postgres'] : SERVICES;
    const containers = (await Promise.all(names.map((name) => this.containers(name)))).flat();
    // A separate command for each, because one command would kill them one after the other.
    await Promise.all(containers.map((container) => this.docker('kill', container)));
  }

  async killGateway(index: number): Promise<void> {
    await this.docker('kill', (await this.containers('gateway'))[index]!);
  }

  /** Nothing to do, because Kafka keeps the messages. */
  async keepMessages(): Promise<void> {}

  /** All rows of PostgreSQL, all messages of Kafka, and all writes of Redis (its append-only file). */
  async contents(): Promise<string[]> {
    const [rows, messages, redis] = await Promise.all([
      this.database(everyRow),
      // In the broker's own network, where it counts as an administrator.
      this.compose('run', '--rm', '--no-deps', '-T', '--entrypoint', 'node', 'topics', '-e', READ_ALL),
      this.compose('exec', '-T', 'redis', 'sh', '-c', 'cat /data/appendonlydir/*.aof'),
    ]);
    const lines = (place: string, text: string) => text.split('\n').map((line) => `${place}: ${line}`);
    return [...rows, ...lines('message', messages), ...lines('redis', redis)];
  }

  logs(): Promise<string> {
    return this.compose('logs', '--no-color', '--no-log-prefix', ...SERVICES);
  }

  /** The names of a service's containers, running or not, in the order of their numbers. */
  async containers(service: string): Promise<string[]> {
    const labels = { project: this.project, service, oneoff: 'False' };
    const filters = Object.entries(labels).map(([name, value]) => `--filter=label=com.docker.compose.${name}=${value}`);
    const names = (await this.docker('ps', '--all', ...filters, '--format', '{{.Names}}')).split('\n').filter(Boolean);
    return names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  }

  /** The network that leads only to this server. `gateways` leads from the load balancer to the gateways. */
  network(server: Server | 'gateways'): string {
    return `${this.project}_${server}`;
  }

  /** redis-cli as the user for people, who has all rights. */
  redis(...command: string[]): Promise<string> {
    return this.redisAs('admin', this.secret('admin-redis-password'), ...command);
  }

  /** redis-cli as this user. */
  redisAs(user: string, password: string, ...command: string[]): Promise<string> {
    const login = ['-e', `REDISCLI_AUTH=${password}`, 'redis', 'redis-cli', '--user', user];
    return this.compose('exec', '-T', ...login, ...command);
  }

  /** One of the secrets of the first start. */
  secret(name: string): string {
    return readFileSync(join(this.directory, 'secrets', name), 'utf8').trim();
  }

  /** Waits until all our services are ready. */
  async allReady(): Promise<void> {
    const containers = (await Promise.all(SERVICES.map((service) => this.containers(service)))).flat();
    await Promise.all(containers.map((container) => this.isReady(container)));
  }

  /** Waits until `/readyz` of this container answers 200. */
  async isReady(container: string): Promise<void> {
    let url = '';
    let askedMs = -Infinity;
    await eventually(
      async () => {
        if (Date.now() - askedMs >= ASK_PORT_EVERY_MS) {
          url = await this.urlOf(container, 9090);
          askedMs = Date.now();
        }
        // With the token, the answer names what is not ready.
        const { status, body } = await call(`${url}/readyz`, this.secret('metrics-token'));
        if (status !== 200) throw new Error(`${container} is not ready: ${JSON.stringify(body)}`);
      },
      { timeoutMs: READY_TIMEOUT_MS, everyMs: 200 },
    );
  }

  /** Waits until this server accepts connections. */
  async listens(server: Server): Promise<void> {
    const [container] = await this.containers(server);
    const look = `</dev/tcp/127.0.0.1/${PORTS[server]} && exit 0`;
    const looks = `for ((i = 0; i < ${LOOKS}; i++)); do ${look}; sleep 0.1; done; exit 1`;
    await eventually(() => this.docker('exec', container!, 'bash', '-c', looks), {
      timeoutMs: READY_TIMEOUT_MS,
      everyMs: 100,
    });
  }

  async exitCode(container: string): Promise<number> {
    return Number(await this.docker('inspect', '--format', '{{.State.ExitCode}}', container));
  }

  async scale(replicas: Partial<Record<Service, number>>): Promise<void> {
    const scale = Object.entries(replicas).flatMap(([service, count]) => ['--scale', `${service}=${count}`]);
    await this.compose('up', '--detach', '--no-deps', '--no-recreate', ...scale, ...Object.keys(replicas));
  }

  compose(...args: string[]): Promise<string> {
    return this.docker('compose', '--env-file', join(this.directory, 'stack.env'), ...args);
  }

  docker(...args: string[]): Promise<string> {
    return this.run('docker', args);
  }

  /** Kills first, because a stop in order takes as long as the lame duck times. */
  async remove(): Promise<void> {
    try {
      await this.compose('kill').catch(() => {});
      await this.run('node', [join(ROOT, 'tools/stack/stack.mjs'), 'down', '--volumes']);
    } finally {
      rmSync(this.directory, { recursive: true, force: true });
    }
  }

  private async urlOf(container: string, port: number): Promise<string> {
    const [address] = (await this.docker('port', container, String(port))).split('\n');
    if (!address) throw new Error(`${container} publishes no port ${port}`);
    return `http://${address}`;
  }

  /** Returns the stdout of a command. Rejects with its stderr if it fails. */
  private run(command: string, args: readonly string[]): Promise<string> {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^TOLLGATE_(?!IMAGES$)|^COMPOSE_|^DATABASE_URL$|^NODE_OPTIONS$/.test(name),
    );
    const env = { ...Object.fromEntries(inherited), ...this.env } as NodeJS.ProcessEnv;
    const executable = command === 'node' ? process.execPath : command;
    return new Promise((done, fail) => {
      execFile(executable, args, { cwd: ROOT, env, maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
        if (error) fail(new Error(`${command} ${args.slice(0, 6).join(' ')}: ${stderr.slice(-SHOWN_CHARS)}`));
        else done(stdout);
      });
    });
  }
}
