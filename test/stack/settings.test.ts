import {
  entropyBits,
  readSettings,
  DrainSettings,
  LameDuckSettings,
  TracingSettings,
  type SettingsClass,
} from '@tollgate/runtime';
import { randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { POOL_SIZE as AUTH_POOL } from '../../apps/auth/src/database';
import { POOL_SIZE as BILLING_POOL } from '../../apps/billing/src/database';
import { BillingSettings } from '../../apps/billing/src/settings';
import { MeteringSettings } from '../../apps/metering/src/settings';
import { POOL_SIZE as CONSOLE_POOL } from '../../apps/console/src/database';
import { IdempotencySettings, OperatorSettings, PublicSettings } from '../../apps/gateway/src/settings';
import { POOL_SIZE as METERING_POOL } from '../../apps/metering/src/database';

const ROOT = resolve(__dirname, '../..');
/** superuser_reserved_connections, then health checks, the jobs of a start, and people with psql. */
const OTHER_CONNECTIONS = 3 + 20;

const SECRETS = [
  'x',
  'sixteen-characters',
  'Tr0ub4dor&3',
  ...[8, 16, 32].map((bytes) => randomBytes(bytes).toString('base64url')),
];
/** The limits of `npm run stack`. They are in an ES module, so another process prints them. */
const { SHARED_VARIABLES, MAX_SCALE, MEMORY, BITS } = JSON.parse(
  execFileSync(process.execPath, [
    '--input-type=module',
    '--eval',
    `import { MAX_SCALE, entropyBits } from '${pathToFileURL(join(ROOT, 'tools/stack/settings.mjs')).href}';
     import { MEMORY, SHARED_VARIABLES } from '${pathToFileURL(join(ROOT, 'tools/stack/variables.mjs')).href}';
     const BITS = ${JSON.stringify(SECRETS)}.map(entropyBits);
     console.log(JSON.stringify({ SHARED_VARIABLES, MAX_SCALE, MEMORY, BITS }))`,
  ]).toString(),
) as {
  SHARED_VARIABLES: Record<string, { min?: number; max?: number }>;
  MAX_SCALE: number;
  MEMORY: Record<string, { mib: number; part?: string; share?: number }>;
  BITS: number[];
};

/** The settings class that reads the variable in its container. */
const READ_BY: Record<string, SettingsClass> = {
  TOLLGATE_PORT: PublicSettings,
  TOLLGATE_OPERATOR_PORT: OperatorSettings,
  TOLLGATE_DRAIN_SECONDS: DrainSettings,
  TOLLGATE_LAME_DUCK_SECONDS: LameDuckSettings,
  TOLLGATE_INVOICE_CLOSE_MINUTES: BillingSettings,
  TOLLGATE_USAGE_KEPT_MONTHS: MeteringSettings,
  TOLLGATE_TRACES_PERCENT: TracingSettings,
  TOLLGATE_TRACES_SLOW_MS: TracingSettings,
  TOLLGATE_MAX_BODY_MIB: PublicSettings,
  TOLLGATE_BODY_MEMORY_MIB: PublicSettings,
  TOLLGATE_IDEMPOTENCY_ANSWER_KIB: IdempotencySettings,
  TOLLGATE_IDEMPOTENCY_TENANT_MIB: IdempotencySettings,
};
const given = (name: string, value: number | string) =>
  readSettings({ TOLLGATE_OPERATOR_SECRET: randomBytes(16).toString('hex'), [name]: String(value) }, [READ_BY[name]!]);

it('npm run stack accepts the same numbers as the services', () => {
  const largest = Object.entries(SHARED_VARIABLES).flatMap(([name, { min = 0, max }]) =>
    max === undefined ? [] : [{ name, min, max }],
  );
  expect(largest.map(({ name }) => name)).toEqual(Object.keys(READ_BY));
  for (const { name, min, max } of largest) {
    expect(given(name, min)).toMatchObject({ [name]: min });
    expect(given(name, max)).toMatchObject({ [name]: max });
    for (const wrong of [min - 1, max + 1, 'many'])
      expect(() => given(name, wrong)).toThrow(`${name} must be a whole number from ${min} to ${max}`);
  }
});

it('npm run stack computes the entropy of a secret as the gateway does', () => {
  expect(BITS).toEqual(SECRETS.map(entropyBits));
});

it('every container has limits of memory and processes, the same in npm run stack and the compose file', () => {
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const defaults = Object.fromEntries(
    [...compose.matchAll(/\$\{TOLLGATE_(\w+)_MIB:-(\d+)\}/g)]
      .filter(([, name]) => !(`TOLLGATE_${name}_MIB` in SHARED_VARIABLES))
      .map(([, name, mib]) => [name, Number(mib)]),
  );
  const set = Object.entries(MEMORY).flatMap(([server, { mib, part, share }]) => [
    [`${server}_MEMORY`, mib],
    ...(part ? [[`${server}_${part}`, mib * share!]] : []),
  ]);
  expect(defaults).toEqual(Object.fromEntries(set));
  const table = readFileSync(join(ROOT, 'docs/operating/distributed.md'), 'utf8');
  for (const [server, { mib }] of Object.entries(MEMORY))
    expect(table).toMatch(new RegExp(`\\| \`TOLLGATE_${server}_MEMORY_MIB\` +\\| ${mib} `));
});

it('the maximum number of replicas fits the connections of PostgreSQL and the load balancer', () => {
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const maxConnections = Number(/max_connections=(\d+)/.exec(compose)![1]);
  const needed = MAX_SCALE * (AUTH_POOL + METERING_POOL + BILLING_POOL + CONSOLE_POOL) + OTHER_CONNECTIONS;
  expect(maxConnections).toBeGreaterThanOrEqual(needed);
  const places = readFileSync(join(ROOT, 'deploy/haproxy/haproxy.cfg'), 'utf8').matchAll(
    /server-template (?:gateway|console) (\d+) /g,
  );
  expect(new Set([...places].map(([, count]) => Number(count)))).toEqual(new Set([MAX_SCALE]));
});

it('the most pods that the chart allows, and one more in an upgrade, fit the limits of their logins', () => {
  const most = Number(
    /\$most := (\d+)/.exec(readFileSync(join(ROOT, 'deploy/chart/templates/scaling.yaml'), 'utf8'))![1],
  );
  const roles = readFileSync(join(ROOT, 'deploy/postgres/roles.sql'), 'utf8');
  const pools = { auth: AUTH_POOL, metering: METERING_POOL, billing: BILLING_POOL, console: CONSOLE_POOL };
  for (const [login, pool] of Object.entries(pools)) {
    const [, limit] = new RegExp(`ALTER ROLE ${login} CONNECTION LIMIT (\\d+);`).exec(roles)!;
    expect((most + 1) * pool).toBeLessThanOrEqual(Number(limit));
  }
});

it.each([
  [0o600, ''],
  [0o640, 'Other users can read'],
  [0o604, 'Other users can read'],
])('npm run stack accepts an operator secret of mode %o only if no other user can read it', (mode, refusal) => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-stack-settings-'));
  const file = join(directory, 'operator.secret');
  writeFileSync(file, randomBytes(32).toString('hex'), { mode });
  const script = `import { readSettings } from '${pathToFileURL(join(ROOT, 'tools/stack/settings.mjs')).href}';
    try { readSettings(process.env); } catch (error) { console.log(error.message); }`;
  const env = { PATH: process.env['PATH'], TOLLGATE_DATA_DIR: directory };
  const message = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: ROOT, env });
  rmSync(directory, { recursive: true });
  expect(message.toString().trim()).toBe(refusal && `${refusal} ${file}. Run: chmod 600 ${file}`);
});

it('npm run stack creates an operator secret again that a full disk left empty', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-stack-settings-'));
  writeFileSync(join(directory, 'operator.secret'), '', { mode: 0o600 });
  const script = `import { readSettings } from '${pathToFileURL(join(ROOT, 'tools/stack/settings.mjs')).href}';
    console.log(readSettings(process.env).secrets.operatorSecret);`;
  const env = { PATH: process.env['PATH'], TOLLGATE_DATA_DIR: directory };
  const made = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: ROOT, env }).toString();
  const kept = readFileSync(join(directory, 'operator.secret'), 'utf8');
  rmSync(directory, { recursive: true });
  expect(made).toMatch(/^[\w-]{43}\n$/);
  expect(kept).toBe(made);
});

it('npm run stack recreates HAProxy when one of the files that it mounts has changed', () => {
  interface Compose {
    services: { haproxy: { labels: Record<string, string>; volumes: string[] } };
  }
  const { haproxy } = (
    parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true, maxAliasCount: -1 }) as Compose
  ).services;
  expect(haproxy.labels).toEqual({ 'tollgate.haproxy-files': '${TOLLGATE_HAPROXY_FILES:-}' });

  const directory = mkdtempSync(join(tmpdir(), 'tollgate-stack-settings-'));
  const copy = join(directory, 'haproxy');
  const script = `import * as stack from '${pathToFileURL(join(ROOT, 'tools/stack/settings.mjs')).href}';
    const settings = stack.readSettings(process.env);
    stack.writeSettings(settings, process.env);
    console.log(JSON.stringify([settings.compose.TOLLGATE_HAPROXY_FILES, stack.haproxyFilesId('${copy}')]));`;
  const env = { PATH: process.env['PATH'], TOLLGATE_DATA_DIR: directory };
  const ids = (): [own: string, ofCopy: string] =>
    JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: ROOT, env }).toString(),
    );
  cpSync(join(ROOT, 'deploy/haproxy'), copy, { recursive: true });
  const [own, ofCopy] = ids();
  expect(own).toMatch(/^[0-9a-f]{12}$/);
  expect(ofCopy).toBe(own);
  expect(readFileSync(join(directory, 'stack.env'), 'utf8')).toContain(`TOLLGATE_HAPROXY_FILES='${own}'`);
  const mounted = haproxy.volumes.map((volume) => /^\.\/deploy\/haproxy\/([^:/]+):/.exec(volume)?.[1]);
  const seen = new Set([own]);
  for (const name of mounted) {
    appendFileSync(join(copy, name!), '\n');
    seen.add(ids()[1]);
  }
  expect(seen.size).toBe(1 + mounted.length);
  rmSync(directory, { recursive: true });
});

/** Settings of services that `npm run stack` does not take: the compose file or a file of the stack decides them. */
const FIXED = [
  // The stack's own servers, with users and passwords that it makes.
  ...['DATABASE_URL', 'REDIS_URL', 'REDIS_SETTLED_REPLICAS', 'TOLLGATE_SIMULATOR_URL', 'TOLLGATE_MESSAGE_KEYS_FILE'],
  ...['BROKERS', 'CA_FILE', 'PASSWORD', 'SASL_MECHANISM', 'SESSION_TIMEOUT_MS', 'TLS', 'TOPIC_PREFIX', 'USERNAME'].map(
    (name) => `KAFKA_${name}`,
  ),
  // Addresses inside the containers, behind HAProxy, which also limits connections.
  ...['TOLLGATE_HOST', 'TOLLGATE_OPERATOR_HOST', 'TOLLGATE_HEALTH_HOST', 'TOLLGATE_HEALTH_PORT'],
  ...['TOLLGATE_CONSOLE_HOST', 'TOLLGATE_CONSOLE_PORT', 'TOLLGATE_CONSOLE_API_URL', 'TOLLGATE_CONSOLE_INNER_API_URL'],
  ...['TOLLGATE_TRUSTED_PROXIES', 'TOLLGATE_MAX_CONNECTIONS'],
  // Replicas instead.
  'TOLLGATE_WORKERS',
  // .tollgate/secrets/idempotency-secrets, which may have two.
  'TOLLGATE_IDEMPOTENCY_SECRETS',
  // One machine: its scraper and its services are changed together.
  'TOLLGATE_FORMER_METRICS_TOKEN',
];
/** Read by `npm run stack` itself, or ports of HAProxy. */
const NOT_IN_CONTAINERS = ['TOLLGATE_DEMO', 'TOLLGATE_DATA_DIR', 'TOLLGATE_PORT', 'TOLLGATE_OPERATOR_PORT'];

describe('a setting of a service', () => {
  const rows = [
    ...readFileSync(join(ROOT, 'docs/operating/settings.md'), 'utf8').matchAll(
      /^\| `([A-Z_]+)`[^|]*\|[^|]*\| ([^|]*?) *\|/gm,
    ),
  ].map(([, name, readers]) => ({ name: name!, readers: readers!.split(', ') }));
  const service = /all services|gateway|auth|metering|billing|console/;

  it('is a setting of the stack too, unless the stack decides it', () => {
    const left = rows.filter(({ readers }) => service.test(readers.join()) && !readers.includes('stack'));
    expect(left.map(({ name }) => name)).toEqual([...FIXED].sort());
  });

  it('reaches the containers that read it', () => {
    const files = ['docker-compose.yml', 'docker-compose.traces.yml'];
    interface Compose {
      services: Record<string, { environment?: Record<string, string> }>;
    }
    const composed = files.map(
      (file) => (parse(readFileSync(join(ROOT, file), 'utf8'), { merge: true, maxAliasCount: -1 }) as Compose).services,
    );
    const taken = rows.filter(
      ({ name, readers }) =>
        readers.includes('stack') && service.test(readers.join()) && !NOT_IN_CONTAINERS.includes(name),
    );
    expect(taken.length).toBeGreaterThan(20);
    const missing = taken.flatMap(({ name, readers }) =>
      readers
        .flatMap((reader) =>
          reader === 'all services' ? ['gateway', 'auth', 'metering', 'billing', 'console'] : reader,
        )
        .filter((reader) => composed[0]![reader] !== undefined)
        .filter((app) => {
          const env = Object.assign({}, ...composed.map((services) => services[app]?.environment)) as object;
          return !(name in env) && !(`${name}_FILE` in env);
        })
        .map((app) => `${name} of ${app}`),
    );
    expect(missing).toEqual([]);
  });
});
