import { SERVICES } from '@tollgate/contracts';
import { applyTopics, createMessageKeys, keysFileOf, MessageKeys, readKeys, type Identity } from '@tollgate/messaging';
import {
  useKafka,
  usePostgresServer,
  useRedis,
  type KafkaServer,
  type PostgresOptions,
  type PostgresServer,
  type RedisServer,
} from '@tollgate/testing';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startSimulator, type Simulator } from '../../apps/simulator/src';
import { ServiceProcess, type App, type Code } from './service-process';

export const OPERATOR_SECRET = 'the-operators-secret-in-tests';
const CONSOLE_SECRET = 'the-secret-of-the-console-0123456789-in-tests';
const IDEMPOTENCY_SECRET = 'the-secret-of-answers-for-repeats-in-tests';
/** A user with exactly the rights in libs/redis/README.md. */
export const REDIS_USER = { name: 'services', password: 'the-services-password' };
const REDIS_RIGHTS = ['~tga:*', '~tgc:*', '&tgc:*', '+@all', '-@admin', '-@dangerous', '+function', '+info'];
/** The user of the brokers' second listener, for tests of refused logins. */
export const KAFKA_USER = { name: 'services', password: 'the-brokers-password' };
const KAFKA_LOGIN =
  'org.apache.kafka.common.security.plain.PlainLoginModule required ' +
  `user_${KAFKA_USER.name}="${KAFKA_USER.password}";`;
const NOT_ANSWERED = /does not answer|no answer within/;
const MIGRATED: readonly App[] = ['auth', 'metering', 'billing', 'console'];

/**
 * Kafka, Redis (with a user of minimal rights) and PostgreSQL in containers, with topics and schemas as an operator
 * makes them, the simulator, and any number of processes of each service.
 */
export class Deployment {
  readonly running = new Set<ServiceProcess>();
  /** The folder of the message keys, with a file for each service. */
  readonly keysDirectory = mkdtempSync(join(tmpdir(), 'tollgate-keys-'));
  simulator!: Simulator;

  constructor(
    readonly kafka: KafkaServer,
    readonly redis: RedisServer,
    readonly postgres: PostgresServer,
    private readonly more: Record<string, string>,
  ) {}

  /** The settings of every service. */
  get env(): Record<string, string> {
    return {
      KAFKA_BROKERS: this.kafka.brokers.join(','),
      REDIS_URL: this.redis.url.replace('://', `://${REDIS_USER.name}:${REDIS_USER.password}@`),
      DATABASE_URL: this.postgres.url,
      TOLLGATE_CONFIG: join(resolve(__dirname, '../..'), 'tollgate.yaml'),
      TOLLGATE_OPERATOR_SECRET: OPERATOR_SECRET,
      TOLLGATE_IDEMPOTENCY_SECRETS: IDEMPOTENCY_SECRET,
      TOLLGATE_CONSOLE_SECRET: CONSOLE_SECRET,
      TOLLGATE_SIMULATOR_URL: this.simulator.url,
      TOLLGATE_LAME_DUCK_SECONDS: '0',
      ...this.more,
    };
  }

  /** An identity with the keys of all services. */
  get identity(): Identity {
    const lines = SERVICES.flatMap((service) =>
      readKeys(readFileSync(keysFileOf(this.keysDirectory, service), 'utf8')),
    );
    const ofPairs = new Map(lines.map((line) => [`${line.from} ${line.to} ${line.id}`, line]));
    return { services: SERVICES, keys: new MessageKeys([...ofPairs.values()]) };
  }

  async prepare(): Promise<void> {
    createMessageKeys(this.keysDirectory);
    await applyTopics({ brokers: this.kafka.brokers, clientId: 'test' });
    await this.migrate();
  }

  async migrate(apps: readonly App[] = MIGRATED, code?: Code): Promise<void> {
    await Promise.all(
      apps.map(async (app) => {
        const job = this.spawn(app, {}, ['--migrate'], code);
        if ((await job.exited()) !== 0) throw new Error(`${app} --migrate failed:\n${job.stderr}`);
      }),
    );
  }

  /** Spawns a service without waiting until it is ready. */
  spawn(app: App, env: Record<string, string> = {}, args: readonly string[] = [], code?: Code): ServiceProcess {
    const service = ServiceProcess.spawn(
      app,
      { ...this.env, TOLLGATE_MESSAGE_KEYS_FILE: keysFileOf(this.keysDirectory, app), ...env },
      args,
      code,
    );
    this.running.add(service);
    service.child.once('exit', () => this.running.delete(service));
    return service;
  }

  /**
   * Starts a service and waits until it is ready. Starts it once more, as a supervisor does, if a server did not
   * answer, because many services start at once here on few cores.
   */
  async start(app: App, env: Record<string, string> = {}, code?: Code): Promise<ServiceProcess> {
    const service = this.spawn(app, env, [], code);
    return service.ready().catch((error: unknown) => {
      if (!service.hasEnded || !NOT_ANSWERED.test(service.stderr)) throw error;
      return this.spawn(app, env, [], code).ready();
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.running].map((service) => service.end('SIGKILL')));
    await this.simulator.close();
    rmSync(this.keysDirectory, { recursive: true });
  }
}

/**
 * A deployment for the calling test file. The servers are running and prepared, but no service is started. `env` has
 * settings for all services.
 */
export function useDeployment(env: Record<string, string> = {}, ofPostgres: PostgresOptions = {}): Deployment {
  const deployment = useServers(env, ofPostgres);
  beforeAll(() => deployment.prepare());
  return deployment;
}

/** The same without message keys, topics and schemas. */
export function useServers(env: Record<string, string> = {}, ofPostgres: PostgresOptions = {}): Deployment {
  const kafka = useKafka({
    secured: 'SASL_PLAINTEXT',
    settings: {
      KAFKA_LISTENER_NAME_SECURE_SASL_ENABLED_MECHANISMS: 'PLAIN',
      KAFKA_LISTENER_NAME_SECURE_PLAIN_SASL_JAAS_CONFIG: KAFKA_LOGIN,
    },
  });
  const redis = useRedis({ args: ['--user', REDIS_USER.name, 'on', `>${REDIS_USER.password}`, ...REDIS_RIGHTS] });
  const postgres = usePostgresServer(ofPostgres);
  const deployment = new Deployment(kafka, redis, postgres, env);
  beforeAll(async () => void (deployment.simulator = await startSimulator({})));
  afterAll(() => deployment.close());
  return deployment;
}

/** The services that every test of a deployment needs. */
type Served = Exclude<App, 'console'>;
/** The running replicas of each service, by its name. */
export type Replicas = Record<Served, ServiceProcess[]>;

/**
 * Starts replicas of each service before the tests of the calling file, for parts that share them. Gateways start
 * last, because all processes at once start too slowly on two cores for Kafka's time limits.
 */
export function useReplicas(deployment: Deployment, counts: Readonly<Record<Served, number>>): Replicas {
  const replicas: Replicas = { gateway: [], auth: [], metering: [], billing: [] };
  const start = async (...apps: Served[]): Promise<void> => {
    const wanted = apps.flatMap((app) => Array.from({ length: counts[app] }, () => app));
    const started = await Promise.all(wanted.map(async (app) => ({ app, service: await deployment.start(app) })));
    for (const { app, service } of started) replicas[app].push(service);
  };
  beforeAll(async () => {
    await start('auth', 'metering', 'billing');
    await start('gateway');
  });
  return replicas;
}
