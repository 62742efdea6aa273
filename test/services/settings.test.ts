import { join, resolve } from 'node:path';
import { ALL, expectRefusals, refusal } from './refusals';
import { ServiceProcess, type App } from './service-process';

// Real: each service as a process. No server is needed, because settings are checked before a server is asked.
const ENV = {
  KAFKA_BROKERS: '127.0.0.1:1',
  REDIS_URL: 'redis://127.0.0.1:1',
  DATABASE_URL: 'postgres://127.0.0.1:1/x',
  TOLLGATE_MESSAGE_KEYS_FILE: '/nowhere/keys',
  TOLLGATE_OPERATOR_SECRET: 'the-operators-secret-in-tests',
  TOLLGATE_CONSOLE_SECRET: 'the-secret-of-the-console-0123456789-in-tests',
  TOLLGATE_CONFIG: join(resolve(__dirname, '../..'), 'tollgate.yaml'),
};
const spawn = (app: App, env: Record<string, string>, args: readonly string[] = []) =>
  ServiceProcess.spawn(app, { ...ENV, ...env }, args);

it('each wrong setting is reported in one line, and its value is not shown', async () => {
  const { lines, exitCode } = await refusal(
    spawn('gateway', {
      KAFKA_BROKERS: 'no port here',
      KAFKA_TLS: 'maybe',
      KAFKA_SASL_MECHANISM: 'plain',
      REDIS_URL: 'http://secret-in-a-url',
      TOLLGATE_OPERATOR_SECRET: 'short',
      TOLLGATE_PORT: '70000',
      TOLLGATE_SIMULATOR_URL: 'nowhere',
      TOLLGATE_HEALTH_HOST: 'no host!',
    }),
  );
  expect(exitCode).toBe(1);
  const message = lines.join('\n');
  for (const name of ['KAFKA_BROKERS', 'KAFKA_TLS', 'REDIS_URL', 'TOLLGATE_OPERATOR_SECRET', 'TOLLGATE_PORT'])
    expect(message).toMatch(new RegExp(`^tollgate: ${name}\\b`, 'm'));
  expect(lines).toHaveLength(7);
  expect(message).not.toMatch(/secret-in-a-url|short/);
});

it('a secret that is easy to guess is refused, with the command that makes a good one', async () => {
  const { lines, exitCode } = await refusal(
    spawn('gateway', { TOLLGATE_OPERATOR_SECRET: 'operator-operator-operator' }),
  );
  expect([exitCode, lines]).toEqual([
    1,
    [expect.stringMatching(/^tollgate: TOLLGATE_OPERATOR_SECRET is too easy to guess: .*openssl rand -hex 32$/)],
  ]);
});

it('two addresses with one port are refused, and so is an entry that is no proxy', async () => {
  const clash = { TOLLGATE_PORT: '8100', TOLLGATE_OPERATOR_PORT: '8100', TOLLGATE_HEALTH_PORT: '8100' };
  const { lines, exitCode } = await refusal(spawn('gateway', clash, ['--validate']));
  expect([exitCode, lines]).toEqual([
    1,
    [
      'tollgate: TOLLGATE_OPERATOR_PORT must differ from TOLLGATE_PORT: both are 8100',
      'tollgate: TOLLGATE_HEALTH_PORT must differ from TOLLGATE_PORT: both are 8100',
    ],
  ]);
  const proxies = await refusal(spawn('gateway', { TOLLGATE_TRUSTED_PROXIES: 'private,haproxy' }, ['--validate']));
  expect([proxies.exitCode, proxies.lines]).toEqual([
    1,
    [expect.stringMatching(/^tollgate: TOLLGATE_TRUSTED_PROXIES must be addresses, .*; "haproxy" is none of them$/)],
  ]);
});

it('each missing setting is reported in one line', async () => {
  const { lines } = await refusal(
    spawn('gateway', { TOLLGATE_OPERATOR_SECRET: '', KAFKA_BROKERS: '', TOLLGATE_MESSAGE_KEYS_FILE: '' }),
  );
  expect(lines).toEqual([
    expect.stringMatching(/^tollgate: KAFKA_BROKERS is not set: it must be host:port/),
    expect.stringMatching(/^tollgate: TOLLGATE_MESSAGE_KEYS_FILE is not set: .*tollgate message-keys create DIR/),
    expect.stringMatching(/^tollgate: TOLLGATE_OPERATOR_SECRET is not set: it must be 16 to 256/),
  ]);
});

it('a missing or wrong tollgate.yaml is reported in one line', async () => {
  const readers: App[] = [...ALL, 'console'];
  await expectRefusals(
    readers.map((app) => spawn(app, { TOLLGATE_CONFIG: '/nowhere/tollgate.yaml' })),
    /^tollgate: \/nowhere\/tollgate\.yaml/,
  );
  await expectRefusals(
    readers.map((app) => spawn(app, { TOLLGATE_CONFIG: __dirname })),
    /^tollgate: .*test\/services: /,
  );
});

it('--validate checks the settings without a server, and names a misspelled one in one warning', async () => {
  const misspelled = { TOLLGATE_PROT: '9999', TOLLGATE_CONSOLE: 'false', TOLLGATE_IMAGES: 'local' };
  await Promise.all(
    [...ALL, 'console' as const].map(async (app) => {
      const valid = spawn(app, misspelled, ['--validate']);
      expect([await valid.exited(), valid.stdout]).toEqual([0, expect.stringMatching(/^The settings .*valid\.\n$/)]);
      const warnings = valid.stderr.trim().split('\n');
      expect(warnings.map((line) => JSON.parse(line) as object)).toEqual([
        expect.objectContaining({
          ...{ level: 40, component: app },
          msg: 'TOLLGATE_PROT is not a setting; did you mean TOLLGATE_PORT?',
        }),
      ]);
    }),
  );
});

it('an unknown option is refused', async () => {
  const { lines, exitCode } = await refusal(spawn('auth', {}, ['--migarte']));
  expect([exitCode, lines[0]]).toEqual([1, 'tollgate: There is no option --migarte.']);
});

it('the services that settle or refund read the number of replicas to wait for', () =>
  expectRefusals(
    (['gateway', 'billing'] as const).map((app) => spawn(app, { REDIS_SETTLED_REPLICAS: '17' })),
    /^tollgate: REDIS_SETTLED_REPLICAS/,
  ));

it('a setting may be in a file', async () => {
  const service = spawn('auth', { DATABASE_URL: '', DATABASE_URL_FILE: '/nowhere/url' }, ['--validate']);
  await service.exited();
  expect(service.stderr).toMatch(
    /DATABASE_URL_FILE: \/nowhere\/url cannot be read \(there is no such file or directory\)/,
  );
});
