import { createServer } from 'node:net';
import { availableParallelism, loadavg } from 'node:os';
import { Client } from 'pg';
import { useRedis, withDatabase } from '@tollgate/testing';
import { useDeployment } from './deployment';
import { ServiceProcess, type App } from './service-process';

/** On a machine of which it has a core: on one that is busier in proportion. */
const MAX_START_MS = 10_000;
const howBusy = () => Math.max(1, loadavg()[0]! / availableParallelism());
const deployment = useDeployment();
/** To a client it is as old as one that never had them. */
const withoutFunctions = useRedis({ args: ['--rename-command', 'FUNCTION', ''] });

interface Failure {
  /** Without the lines of the log. */
  lines: string[];
  exitCode: number | null;
  tookMs: number;
}

/** Starts the service with these settings over the right ones and waits for its end. */
async function fail(app: App, env: Record<string, string>, args: readonly string[] = []): Promise<Failure> {
  const began = performance.now();
  const service = deployment.spawn(app, env, args);
  const exitCode = await service.exited();
  const tookMs = performance.now() - began;
  return {
    lines: service.stderr
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('{')),
    exitCode,
    tookMs,
  };
}

/** One line that says what is wrong and names the cure, in time. */
async function expectRefusal(app: App, env: Record<string, string>, line: RegExp): Promise<void> {
  const { lines, exitCode, tookMs } = await fail(app, env);
  expect(lines).toEqual([expect.stringMatching(line)]);
  expect(exitCode).toBe(1);
  expect(tookMs).toBeLessThan(MAX_START_MS * howBusy());
}

/** Runs SQL as superuser. */
async function sql(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

describe('Kafka', () => {
  it('that does not answer', () =>
    expectRefusal(
      'billing',
      { KAFKA_BROKERS: '127.0.0.1:1' },
      /^tollgate: Kafka cannot be used at 127\.0\.0\.1:1 .*ECONNREFUSED.*: check KAFKA_BROKERS/,
    ));

  it('whose host nobody knows', () =>
    expectRefusal('auth', { KAFKA_BROKERS: 'kafka.invalid:9092' }, /kafka\.invalid.*check KAFKA_BROKERS/));

  it('that expects no user', () =>
    expectRefusal(
      'metering',
      { KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'tollgate', KAFKA_PASSWORD: 'not-to-be-shown' },
      /\(without TLS, as "tollgate" by plain\).* check KAFKA_BROKERS, KAFKA_TLS and KAFKA_SASL_MECHANISM(?!.*not-to-be-shown)/,
    ));

  it('that speaks no TLS', () =>
    expectRefusal('gateway', { KAFKA_TLS: 'true' }, /\(with TLS, without a user\).* check KAFKA_BROKERS, KAFKA_TLS/));

  it('without the topics', () =>
    expectRefusal(
      'gateway',
      { KAFKA_TOPIC_PREFIX: 'other.' },
      /missing: "other\.usage-events".*tollgate topics apply/,
    ));
});

describe('Redis', () => {
  it('that does not answer', () =>
    expectRefusal(
      'gateway',
      { REDIS_URL: 'redis://127.0.0.1:1' },
      /^tollgate: REDIS_URL \(redis:\/\/127\.0\.0\.1:1\): Redis does not answer.*start it, or correct the address\.$/,
    ));

  it('that refuses the password', async () => {
    await deployment.redis.exec(redisCli('ACL', 'SETUSER', 'tollgate', 'on', '>right', '~*', '&*', '+@all'));
    const url = deployment.redis.url.replace('://', '://tollgate:wrong@');
    await expectRefusal(
      'auth',
      { REDIS_URL: url },
      /^tollgate: REDIS_URL \(redis:\/\/127\.0\.0\.1:\d+\): Redis refuses this user and password: WRONGPASS/,
    );
  });

  it('that does not let us load functions', async () => {
    await deployment.redis.exec(redisCli('ACL', 'SETUSER', 'weak', 'on', '>weak', '~*', '&*', '+@all', '-function'));
    const url = deployment.redis.url.replace('://', '://weak:weak@');
    await expectRefusal('metering', { REDIS_URL: url }, /the user lacks rights .*it needs .*\+function/);
  });

  it('that has no functions, as before version 7', () =>
    expectRefusal(
      'gateway',
      { REDIS_URL: withoutFunctions.url },
      /this server has no Functions: Redis 7\.0 or newer is needed\.$/,
    ));
});

const redisCli = (...command: string[]) => ['redis-cli', '-p', String(deployment.redis.port), ...command];

describe('PostgreSQL', () => {
  it('that does not answer', () =>
    expectRefusal(
      'auth',
      { DATABASE_URL: 'postgres://tollgate:not-to-be-shown@127.0.0.1:1/tollgate' },
      /^tollgate: No PostgreSQL answers at 127\.0\.0\.1:1\/tollgate: start it, or correct DATABASE_URL\.$/,
    ));

  it('that refuses the password', () =>
    expectRefusal(
      'billing',
      { DATABASE_URL: deployment.postgres.url.replace(':tollgate@', ':not-to-be-shown@') },
      /^tollgate: PostgreSQL at 127\.0\.0\.1:\d+\/tollgate refuses the password of DATABASE_URL\.$/,
    ));

  it('without the database', () =>
    expectRefusal(
      'metering',
      { DATABASE_URL: withDatabase(deployment.postgres.url, 'nowhere') },
      /nowhere has no such database: create it, or correct DATABASE_URL\.$/,
    ));

  it('without the schema, with an older one, with a newer one', async () => {
    const url = withDatabase(deployment.postgres.url, 'behind');
    await sql(deployment.postgres.url, 'CREATE DATABASE behind');
    const behind = { DATABASE_URL: url };
    await expectRefusal('billing', behind, /^tollgate: The schema "billing" is not there: run .* --migrate/);

    const migrated = await deployment.spawn('billing', behind, ['--migrate']);
    expect([await migrated.exited(), migrated.stdout]).toEqual([
      0,
      expect.stringMatching(/^The schema "billing" was migrated: 001/),
    ]);
    await sql(
      url,
      'DELETE FROM billing.schema_migration WHERE number = (SELECT max(number) FROM billing.schema_migration)',
    );
    await expectRefusal('billing', behind, /^tollgate: The schema "billing" is 1 migration behind .* --migrate/);

    await sql(
      url,
      `INSERT INTO billing.schema_migration SELECT n, 'later.sql', '' FROM generate_series(900, 900) AS n`,
    );
    await expectRefusal(
      'billing',
      behind,
      /^tollgate: The schema "billing" was migrated by a newer version of Tollgate/,
    );
  });
});

describe('this machine', () => {
  it.each([
    ['gateway', 'TOLLGATE_PORT'],
    ['gateway', 'TOLLGATE_OPERATOR_PORT'],
    ['metering', 'TOLLGATE_HEALTH_PORT'],
  ] as const)('has a port in use: %s, %s', async (app, setting) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const port = String((server.address() as { port: number }).port);
    await expectRefusal(
      app,
      { [setting]: port },
      new RegExp(`^tollgate: Port ${port} on 127\\.0\\.0\\.1 is in use: .* set ${setting} `),
    );
    await new Promise((resolve) => server.close(resolve));
  });
});

describe('settings', () => {
  it('that are wrong or missing are each a line, and none is echoed', async () => {
    const { lines, exitCode } = await fail('gateway', {
      KAFKA_BROKERS: 'no port here',
      KAFKA_TLS: 'maybe',
      KAFKA_SASL_MECHANISM: 'plain',
      REDIS_URL: 'http://secret-in-a-url',
      TOLLGATE_OPERATOR_SECRET: 'short',
      TOLLGATE_PORT: '70000',
      TOLLGATE_SIMULATOR_URL: 'nowhere',
      TOLLGATE_HEALTH_HOST: 'no host!',
    });
    expect(exitCode).toBe(1);
    const message = lines.join('\n');
    for (const name of ['KAFKA_BROKERS', 'KAFKA_TLS', 'REDIS_URL', 'TOLLGATE_OPERATOR_SECRET', 'TOLLGATE_PORT'])
      expect(message).toMatch(new RegExp(`^tollgate: ${name}\\b`, 'm'));
    expect(lines).toHaveLength(7);
    expect(message).not.toMatch(/secret-in-a-url|short/);
  });

  it('that are missing', async () => {
    const { lines } = await fail('gateway', { TOLLGATE_OPERATOR_SECRET: '', KAFKA_BROKERS: '' });
    expect(lines).toEqual([
      expect.stringMatching(/^tollgate: KAFKA_BROKERS is not set: it must be host:port/),
      expect.stringMatching(/^tollgate: TOLLGATE_OPERATOR_SECRET is not set: it must be 16 to 256/),
    ]);
  });

  it('of a tollgate.yaml that is not there, or wrong', async () => {
    await expectRefusal(
      'gateway',
      { TOLLGATE_CONFIG: '/nowhere/tollgate.yaml' },
      /^tollgate: \/nowhere\/tollgate\.yaml/,
    );
    await expectRefusal('auth', { TOLLGATE_CONFIG: __dirname }, /^tollgate: .*test\/services: /);
  });

  it('are judged by --validate alone, without a server; an option that is not there is refused', async () => {
    const env = {
      KAFKA_BROKERS: '127.0.0.1:1',
      REDIS_URL: 'redis://127.0.0.1:1',
      DATABASE_URL: 'postgres://127.0.0.1:1/x',
    };
    for (const app of ['gateway', 'auth', 'metering', 'billing'] as const) {
      const valid = deployment.spawn(app, env, ['--validate']);
      expect([await valid.exited(), valid.stdout]).toEqual([0, expect.stringMatching(/^The settings .*valid\.\n$/)]);
    }
    const { lines, exitCode } = await fail('auth', {}, ['--migarte']);
    expect([exitCode, lines[0]]).toEqual([1, 'tollgate: There is no option --migarte.']);
  });
});

it('takes secrets from files', async () => {
  const service: ServiceProcess = deployment.spawn('auth', { DATABASE_URL: '', DATABASE_URL_FILE: '/nowhere/url' }, [
    '--validate',
  ]);
  await service.exited();
  expect(service.stderr).toMatch(/DATABASE_URL_FILE: \/nowhere\/url cannot be read \(ENOENT\)/);
});
