import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BACKEND_KEY, docker, type Stack } from './stack-process';

/** A dropped packet is never answered. */
const CONNECT_TIMEOUT_S = 10;
/** Which containers can reach each other. */
const STORES = ['postgres:5432', 'redis:6379', 'kafka:9092'];
const REACHES: Record<string, [wanted: string[], forbidden: string[]]> = {
  haproxy: [
    ['gateway:8080', 'gateway:8081', 'gateway:9090', 'console:8082', 'console:9090'],
    [...STORES, 'auth:9090', 'metering:9090', 'billing:9090', 'simulator:9000'],
  ],
  simulator: [[], [...STORES, 'auth:9090', 'billing:9090', 'haproxy:8080']],
  gateway: [['redis:6379', 'kafka:9092', 'simulator:9000'], ['postgres:5432']],
  auth: [STORES, ['simulator:9000', 'haproxy:8080']],
  billing: [STORES, ['simulator:9000', 'haproxy:8080']],
  console: [
    ['postgres:5432', 'kafka:9092', 'haproxy:8080'],
    ['redis:6379', 'simulator:9000'],
  ],
  metering: [[...STORES, 'simulator:9000'], ['haproxy:8080']],
  functions: [['redis:6379'], ['postgres:5432', 'kafka:9092', 'simulator:9000', 'haproxy:8080']],
};

/** The tables of the books, each with one of its columns. */
const BOOKS = [
  ['billing.journal_entry', 'amount_cents'],
  ['billing.posting', 'amount_cents'],
  ['billing.charge', 'id'],
  ['billing.invoice', 'amount_cents'],
  ['metering.usage_event', 'cost_nanos'],
];
/** Runs in a container with the login of its service. Prints the SQLSTATE that refuses each statement. */
const ASK_DATABASE = `
  const { Client } = require('pg');
  const url = require('node:fs').readFileSync(process.env.DATABASE_URL_FILE, 'utf8').trim();
  const client = new Client({ connectionString: url });
  client.connect().then(async () => {
    const codes = [];
    for (const sql of process.argv.slice(1))
      codes.push(await client.query(sql).then(() => 'done', (error) => error.code));
    console.log(JSON.stringify(codes));
    await client.end();
  });`;
const NO_RIGHT = '42501';

/** What each part of a running stack can see and reach. */
export function wallsTests(stack: Stack, of: () => { tenantId: string; operatorUrl: string }): void {
  it('neither docker inspect of any container nor docker compose config shows a secret', async () => {
    const ids = await stack.all();
    const shown = [
      await docker('inspect', ...ids),
      await stack.compose('config'),
      readFileSync(join(stack.dataDirectory, 'stack.env'), 'utf8'),
    ];
    const secrets = stack.secrets();
    expect(secrets.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        'operator-secret',
        'idempotency-secrets',
        'gateway-redis-url',
        'auth-database-url',
        'console-secret',
        'metrics-token',
        'config-secrets',
        'backend key',
      ]),
    );
    const seen = secrets.filter(([, value]) => shown.some((text) => text.includes(value)));
    expect(seen.map(([name]) => name)).toEqual([]);
    // The secrets did reach their containers.
    const [gateway = ''] = await stack.containers('gateway');
    expect(await docker('exec', gateway, 'cat', '/run/secrets/config-secrets')).toContain(BACKEND_KEY);
    const [auth = ''] = await stack.containers('auth');
    expect((await docker('exec', auth, 'ls', '/run/secrets')).split('\n')).not.toContain('config-secrets');
  });

  it('a container reaches only the parts that it uses, by name or by address', async () => {
    const addresses = await stack.addresses();
    const reached = await Promise.all(
      Object.entries(REACHES).map(async ([from, [wanted, forbidden]]) => {
        const [container = ''] = await stack.containers(from);
        const targets = [...wanted, ...forbidden].flatMap((to) => {
          const [server = '', port = ''] = to.split(':');
          return [server, ...(addresses.get(server) ?? [])].map((host) => ({ to, path: `/dev/tcp/${host}/${port}` }));
        });
        const tries = targets.map(
          ({ to, path }) => `timeout ${CONNECT_TIMEOUT_S} bash -c '<${path}' 2>/dev/null && echo ${to} &`,
        );
        const answers = await docker('exec', container, 'bash', '-c', `${tries.join('\n')}\nwait`);
        return answers.split('\n').flatMap((to) => (to === '' ? [] : `${from} → ${to}`));
      }),
    );
    const expected = Object.entries(REACHES).flatMap(([from, [wanted]]) => wanted.map((to) => `${from} → ${to}`));
    expect([...new Set(reached.flat())].sort()).toEqual(expected.sort());
  });

  it('Redis refuses every login without a password, also from its own network', async () => {
    const [redis = ''] = await stack.containers('redis');
    const image = await docker('inspect', '--format', '{{.Config.Image}}', redis);
    const ask = (...args: string[]) => {
      const network = `${stack.project}_redis`;
      return docker('run', '--rm', '--network', network, image, 'redis-cli', '-h', 'redis', ...args);
    };
    expect(await ask('PING')).toMatch(/NOAUTH/);
    expect(await ask('HSET', `tga:{${of().tenantId}}:credit`, 'balance', '1')).toMatch(/NOAUTH/);
    const as = (user: string, ...args: string[]) =>
      ask('--no-auth-warning', '--user', user, '--pass', stack.secret(`${user}-redis-password`), ...args);
    expect(await as('auth', 'HSET', `tga:{${of().tenantId}}:credit`, 'balance', '1')).toMatch(/NOPERM/);
    expect(await as('gateway', 'HSET', 'tgc:{credentials}:records', 'x', '1')).toMatch(/NOPERM/);
    // All services have done their work by now, and Redis has logged no other refusals.
    const refusals = (await as('admin', 'ACL', 'LOG')).split('\n');
    const valuesOf = (field: string) => refusals.flatMap((line, at) => (line === field ? refusals[at + 1]! : []));
    expect([valuesOf('username').sort(), valuesOf('object')]).toEqual([
      ['auth', 'gateway'],
      ['tgc:{credentials}:records', `tga:{${of().tenantId}}:credit`],
    ]);
  });

  it.each(['auth', 'metering', 'billing', 'console'])(
    'the database login of %s can neither change nor delete anything in the books',
    async (service) => {
      const [container = ''] = await stack.containers(service);
      const statements = BOOKS.flatMap(([table, column]) => [
        `DELETE FROM ${table}`,
        `UPDATE ${table} SET ${column} = ${column}`,
        `TRUNCATE ${table} CASCADE`,
        `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
      ]);
      const ask = (...sql: string[]) => docker('exec', container, 'node', '--eval', ASK_DATABASE, ...sql);
      expect(JSON.parse(await ask('SELECT 1', ...statements))).toEqual(['done', ...statements.map(() => NO_RIGHT)]);
    },
  );

  it('only requests with the token get metrics and the details of readiness', async () => {
    const [simulator = ''] = await stack.containers('simulator');
    const ask = async (url: string, token = '') =>
      JSON.parse(
        await docker(
          ...['exec', simulator, 'node', '--eval'],
          `fetch('${url}', { headers: { authorization: 'Bearer ${token}' } })
             .then(async (answer) => console.log(JSON.stringify([answer.status, await answer.text()])))`,
        ),
      ) as [number, string];
    const token = stack.secret('metrics-token');
    expect((await ask('http://gateway:9090/metrics'))[0]).toBe(401);
    expect(await ask('http://gateway:9090/readyz')).toEqual([200, '{"status":"ok"}\n']);
    expect((await ask('http://gateway:9090/readyz', token))[1]).toContain('"redis":{"ok":true');
    expect((await ask('http://gateway:9090/metrics', token))[1]).toContain('# TYPE tollgate_');
    // The same on the port of the operator API, through the load balancer.
    const { operatorUrl } = of();
    expect((await fetch(`${operatorUrl}/metrics`)).status).toBe(401);
    expect(await (await fetch(`${operatorUrl}/readyz`)).json()).toEqual({ status: 'ok' });
  });

  it('every container has limits of memory and processes', async () => {
    for (const { Name: name, HostConfig: host } of JSON.parse(await docker('inspect', ...(await stack.all())))) {
      expect({ name, limited: host.Memory > 0 && host.PidsLimit > 0 }).toEqual({ name, limited: true });
    }
  });

  it('containers on the path of a request have four times the share of a busy processor', async () => {
    const path = new Set(['haproxy', 'gateway', 'redis', 'simulator']);
    for (const { Config: config, HostConfig: host } of JSON.parse(await docker('inspect', ...(await stack.all())))) {
      const service: string = config.Labels['com.docker.compose.service'];
      // 0: the default of 1024.
      expect({ service, shares: host.CpuShares }).toEqual({ service, shares: path.has(service) ? 4_096 : 0 });
    }
  });
}
