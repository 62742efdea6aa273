import { isWellFormedCredential, newId } from '@tollgate/contracts';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { OPERATOR_SECRET, useServices } from './services';

const ROOT = resolve(__dirname, '../..');
const services = useServices();
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tollgate-cli-'));
  writeFileSync(
    join(directory, 'operator.json'),
    JSON.stringify({ url: services.operatorUrl, secret: OPERATOR_SECRET }),
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The real process; it finds the server by its data directory unless `env` says otherwise. */
async function tollgate(args: string[], env: Record<string, string> = {}, cwd = ROOT): Promise<Ended> {
  const inherited = { PATH: process.env['PATH'] ?? '', TOLLGATE_DATA_DIR: directory };
  const script = [join(ROOT, 'test/setup/run-ts.cjs'), join(ROOT, 'apps/cli/src/main.ts')];
  const child = spawn(process.execPath, [...script, ...args], { cwd, env: { ...inherited, ...env } });
  const ended: Ended = { code: null, stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (ended.stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (ended.stderr += String(chunk)));
  ended.code = await new Promise((done) => child.once('close', done));
  return ended;
}

/** With --json: exactly one document on stdout, nothing on stderr, exit code 0. */
async function json(...args: string[]) {
  const { code, stdout, stderr } = await tollgate([...args, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tollgate(args);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

/** A port on which nobody listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

describe('what an operator does', () => {
  it('from a tenant to its revoked credentials, as JSON', async () => {
    const tenant = await json('tenant', 'create', 'Acme');
    expect(tenant).toMatchObject({
      id: expect.stringMatching(/^ten_/),
      name: 'Acme',
      plan: 'default',
      status: 'active',
    });
    expect((await json('tenant', 'list'))[0]).toEqual(tenant);

    const credit = await json('credit', 'add', tenant.id, '10.05', '--ref', 'r1');
    expect(credit).toMatchObject({ balanceCents: 1_005, currency: 'USD', entry: { amountCents: 1_005, ref: 'r1' } });
    expect(await json('credit', 'add', tenant.id, '10.05', '--ref', 'r1')).toEqual(credit);
    expect(await json('credit', 'show', tenant.id)).toMatchObject({ balanceCents: 1_005, entries: [{ ref: 'r1' }] });

    const key = await json(
      'key',
      'create',
      tenant.id,
      'production',
      '--profile',
      'default',
      '--expires-at',
      '2099-01-01',
    );
    expect(isWellFormedCredential('key', key.key)).toBe(true);
    expect(key).toMatchObject({ name: 'production', expiresAt: '2099-01-01T00:00:00.000Z' });
    expect(await json('key', 'revoke', tenant.id, key.id)).toEqual({ id: key.id, status: 'revoked' });
    expect(await json('key', 'list', tenant.id)).toEqual([expect.objectContaining({ id: key.id, status: 'revoked' })]);

    const token = await json('token', 'create', tenant.id, 'ops', '--scopes', 'usage:read,billing:read');
    expect(isWellFormedCredential('token', token.token)).toBe(true);
    expect(token.scopes).toEqual(['usage:read', 'billing:read']);
    expect((await json('token', 'create', tenant.id)).scopes).toHaveLength(5);
    await json('token', 'revoke', tenant.id, token.id);
    const [, listed] = await json('token', 'list', tenant.id);
    expect(listed).toMatchObject({ id: token.id, revokedAt: expect.any(String) });

    expect(await json('reconcile')).toMatchObject({ ok: true, differences: [] });
  });

  it('for people: tables, amounts with their currency, and what to do next', async () => {
    const made = await text('tenant', 'create', 'Evil \u001b[31m name', '--plan', 'default').catch(() => '');
    expect(made).toBe(''); // control characters are no name
    const tenant = /ten_\w+/.exec(await text('tenant', 'create', 'Widgets & Co'))![0];
    expect(await text('tenant', 'list')).toMatch(
      new RegExp(`^ID +NAME +PLAN +STATUS +CREATED\n${tenant}  Widgets & Co +default  active`),
    );
    expect(await text('credit', 'add', tenant, '25')).toMatch(
      /^25\.00 USD added \(ref .+\)\. Balance: 25\.00 USD\.\n$/,
    );
    expect(await text('credit', 'show', tenant)).toMatch(
      /Balance: +25\.00 USD\nNot yet posted: +0\.000000000 USD\n\nTIME .*\n.* topup +25\.00 USD +manual/,
    );
    expect(await text('key', 'list', tenant)).toContain(`tollgate key create ${tenant}`);
    const key = await text('key', 'create', tenant);
    expect(key).toMatch(/^sk-svc-\w{49}\n\nKey key_\w+ \(cli\)\. Store/);
    expect(await text('key', 'list', tenant)).toMatch(/^ID .*\nkey_\w+  cli +….{4}  active/);
    expect(await text('token', 'create', tenant, 'ops')).toMatch(
      /^fma_\w{49}\n\nToken tok_\w+ \(ops\) with keys:read, /,
    );
    expect(await text('token', 'list', tenant)).toMatch(/ops +….{4}  keys:read,/);
    expect(await text('reconcile')).toContain('The books agree.');
  });

  it('lists more than one page', async () => {
    const { tenantId } = await services.tenant();
    for (let i = 0; i < 205; i++) {
      await services.messages.request('auth.keys.create', {
        tenantId,
        name: `k${i}`,
        hash: `${i}`.padStart(64, '0'),
        last4: '0000',
      });
    }
    expect(await json('key', 'list', tenantId)).toHaveLength(205);
  });
});

describe('exit code 1', () => {
  it('for what the server refuses, with its message, as JSON where asked', async () => {
    const id = newId('ten');
    const plain = await tollgate(['credit', 'show', id]);
    expect(plain).toEqual({ code: 1, stdout: '', stderr: 'tollgate: No such tenant.\n' });
    const asJson = await tollgate(['credit', 'show', id, '--json']);
    expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([
      1,
      { error: { code: 'not_found', message: 'No such tenant.' } },
    ]);
  });

  it('when there is no server, saying what to do, and never the secret', async () => {
    const closed = {
      TOLLGATE_OPERATOR_URL: `http://127.0.0.1:${await closedPort()}`,
      TOLLGATE_OPERATOR_SECRET: 'do-not-print-me',
    };
    const cases: [Record<string, string>, RegExp][] = [
      [{ TOLLGATE_DATA_DIR: join(directory, 'nothing') }, /No Tollgate was found.*npm start/],
      [closed, /does not answer at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\).*Is it running/],
      [{ TOLLGATE_OPERATOR_SECRET: 'do-not-print-me' }, /secret.*was refused/],
    ];
    for (const [env, message] of cases) {
      const { code, stdout, stderr } = await tollgate(['tenant', 'list'], env);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(message);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(stderr).not.toContain('do-not-print-me');
    }
  });

  it('when something else answers there, or the file is broken', async () => {
    const other = createServer((_request, response) => response.end('<html>')).listen(0, '127.0.0.1');
    await new Promise((done) => other.once('listening', done));
    const env = {
      TOLLGATE_OPERATOR_URL: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
      TOLLGATE_OPERATOR_SECRET: 'x',
    };
    const answer = await tollgate(['tenant', 'list'], env);
    other.close();
    expect([answer.code, answer.stderr]).toEqual([1, expect.stringContaining('is not Tollgate')]);
    const broken = mkdtempSync(join(tmpdir(), 'tollgate-cli-'));
    writeFileSync(join(broken, 'operator.json'), '{');
    expect((await tollgate(['tenant', 'list'], { TOLLGATE_DATA_DIR: broken })).code).toBe(1);
    rmSync(broken, { recursive: true });
  });

  it('when the books differ', async () => {
    const { tenantId } = await services.tenant();
    await services.messages.request('billing.credit.add', { tenantId, amountCents: 5, source: 'manual', ref: 'x' });
    const report = {
      ok: false,
      differences: [{ check: 'balance', tenantId, expected: '1', actual: '2' }],
      checkedAt: '',
      tenants: 1,
      events: 0,
    };
    const sums = {
      eventsNanos: '0',
      chargesNanos: '0',
      debitsNanos: '0',
      carriedNanos: '0',
      pendingHolds: 0,
      settledHolds: 0,
      currency: 'USD',
    };
    // What the server answers then; that it does so is billing's to prove.
    const server = createServer((_request, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: { ...report, ...sums } })),
    ).listen(0, '127.0.0.1');
    await new Promise((done) => server.once('listening', done));
    const env = {
      TOLLGATE_OPERATOR_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      TOLLGATE_OPERATOR_SECRET: 'x',
    };
    const plain = await tollgate(['reconcile'], env);
    const asJson = await tollgate(['reconcile', '--json'], env);
    server.close();
    expect([plain.code, asJson.code]).toEqual([1, 1]);
    expect(plain.stdout).toContain('THE BOOKS DIFFER');
    expect(JSON.parse(asJson.stdout).differences).toEqual(report.differences);
  });
});

describe('exit code 2', () => {
  it.each([
    [[]],
    [['tenant']],
    [['nonsense']],
    [['tenant', 'create']],
    [['tenant', 'create', 'a', 'b']],
    [['tenant', 'list', '--nonsense']],
    [['credit', 'add', 'ten_x', '1.234']],
    [['credit', 'add', 'ten_x', '-5']],
    [['credit', 'show', 'ten_x', '--entries', '0']],
    [['token', 'create', 'ten_x', 'n', '--scopes', 'everything']],
  ])('for wrong usage: %j', async (args) => {
    const { code, stdout, stderr } = await tollgate(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/error:|Usage:/);
  });

  it('for settings that do not fit together', async () => {
    for (const env of [
      { TOLLGATE_OPERATOR_URL: 'http://x' },
      { TOLLGATE_OPERATOR_URL: 'x', TOLLGATE_OPERATOR_SECRET: 'y' },
    ]) {
      expect(await tollgate(['tenant', 'list'], env)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('TOLLGATE_OPERATOR_URL'),
      });
    }
  });
});

it('finds the server by the environment first, with or without the path of the API', async () => {
  for (const path of ['', '/', '/_operator/v1']) {
    const env = {
      TOLLGATE_OPERATOR_URL: services.operatorUrl + path,
      TOLLGATE_OPERATOR_SECRET: OPERATOR_SECRET,
      TOLLGATE_DATA_DIR: '/nowhere',
    };
    expect((await tollgate(['tenant', 'list'], env)).code).toBe(0);
  }
});

describe('config check', () => {
  it('accepts the configuration that is shipped, without a server', async () => {
    const { code, stdout } = await tollgate(['config', 'check', '--json'], { TOLLGATE_DATA_DIR: '/nowhere' });
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({ ok: true, file: 'tollgate.yaml', problems: [] }),
    ]);
  });

  it('names every wrong field by path and line, and fails', async () => {
    const file = join(directory, 'wrong.yaml');
    writeFileSync(file, 'currency: usd\nunknown: 1\nmodels: []\nplans: []\n');
    const plain = await tollgate(['config', 'check', file]);
    expect([plain.code, plain.stdout]).toEqual([1, '']);
    for (const path of ['1: currency', '2: unknown', '3: models', '4: plans'])
      expect(plain.stderr).toContain(`${file}:${path}`);
    const { code, stdout } = await tollgate(['config', 'check', '--json'], { TOLLGATE_CONFIG: file });
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { ok: false, problems: expect.arrayContaining([expect.objectContaining({ path: 'unknown', line: 2 })]) },
    ]);
    expect((await tollgate(['config', 'check', join(directory, 'none.yaml')])).code).toBe(1);
  });
});

it('explains every command with examples', async () => {
  const all = [
    'tenant create',
    'tenant list',
    'credit add',
    'credit show',
    'key create',
    'key list',
    'key revoke',
    'token create',
    'token list',
    'token revoke',
    'reconcile',
    'config check',
  ];
  for (const command of all) {
    const { code, stdout } = await tollgate([...command.split(' '), '--help']);
    expect([command, code]).toEqual([command, 0]);
    expect(stdout).toContain(`$ tollgate ${command}`);
    expect(stdout).toContain('--json');
  }
  expect((await tollgate(['--help'])).stdout).toContain('Exit codes: 0 done');
});
