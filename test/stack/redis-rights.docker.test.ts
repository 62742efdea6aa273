import { RedisAdmissionStore, type AdmissionStore } from '@tollgate/admission';
import { newId } from '@tollgate/contracts';
import { RedisCredentialStore } from '@tollgate/credentials';
import { openClient, readRedisUrl, REDIS_USERS, type RedisUser } from '@tollgate/redis';
import { configureLogging } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, useRedis } from '@tollgate/testing';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Fixture, TOKEN_NANOS } from '../../libs/admission/src/suite/store.fixture';
import { aRecord } from '../../libs/credentials/src/record.fixture';
import { passwordTests } from './redis-passwords.part';
import { NOBODY, OWN, TENANT_KEY } from './redis-refusals';

configureLogging({ level: 'silent', pretty: false });
const ROOT = resolve(__dirname, '../..');
const CLI = join(ROOT, 'apps/cli/dist/main.js');
const BALANCE = 1_000_000_000n;
/** Any other error means that the command was allowed. */
const REFUSED = /^NOPERM|^ERR DEBUG command not allowed/;

/** The secrets as `npm run stack` makes them: the ACL file, passwords and URLs. */
const directory = mkdtempSync(join(tmpdir(), 'tollgate-rights-'));
execFileSync(process.execPath, [
  '--input-type=module',
  '--eval',
  `import { makeSecrets } from '${pathToFileURL(join(ROOT, 'tools/stack/secrets.mjs')).href}';
   makeSecrets('${directory}', { operatorSecret: 'x', metricsToken: 'y', configSecrets: '' }, {});`,
]);
const secret = (name: string) => readFileSync(join(directory, 'secrets', name), 'utf8').trim();

const redis = useRedis({ args: ['--aclfile', '/users.acl'], files: { '/users.acl': `${secret('redis-users')}\n` } });
const urlOf = (user: string) => secret(`${user}-redis-url`).replace('redis:6379', `127.0.0.1:${redis.port}`);
const passwordOf = (user: string) => (user === 'health' ? 'anything' : secret(`${user}-redis-password`));
/** The output of redis-cli, which may be an error. */
const as = (user: string, ...command: string[]) =>
  redis.exec([
    ...['redis-cli', '-p', String(redis.port), '--no-auth-warning', '--user', user, '--pass', passwordOf(user)],
    ...command,
  ]);
const admin = (...command: string[]) => as('admin', ...command);

const opened: { close(): Promise<void> }[] = [];
const kept = <T extends { close(): Promise<void> }>(store: T): T => {
  opened.push(store);
  return store;
};
async function admissionOf(user: RedisUser, settledReplicas = 0): Promise<AdmissionStore> {
  const store = kept(
    new RedisAdmissionStore({
      url: urlOf(user),
      callTimeoutMs: PATIENT_CALL_MS,
      now: () => fixture.nowMs,
      settledReplicas,
      // Metering sends no requests.
      ...(user === 'metering'
        ? {}
        : {
            onUnknownTenant: async (tenantId: string) => ({
              update: { tenantId, version: 1n, balanceNanos: BALANCE, releases: [], suspended: false, budgets: [] },
              spent: [{ month: '2026-05', tenantNanos: 5n, keys: [{ keyId: fixture.keyId, nanos: 5n }] }],
            }),
          }),
    }),
  );
  await store.start();
  return store;
}
async function credentialsOf(user: RedisUser): Promise<RedisCredentialStore> {
  const store = kept(new RedisCredentialStore({ url: urlOf(user) }));
  await store.start();
  return store;
}

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture(() => Promise.reject(new Error('not asked')));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

/** The command as an operator runs it. */
const loadAs = (user: RedisUser) =>
  new Promise<{ code: number; stderr: string }>((done) => {
    const env = { ...process.env, REDIS_URL: urlOf(user) };
    execFile(process.execPath, [CLI, 'redis', 'load'], { env }, (error, _, stderr) =>
      done({ code: Number(error?.code ?? 0), stderr }),
    );
  });

describe('functions that the services may not load', () => {
  it('stop a start with one line if they are missing, and only their own user can load them', async () => {
    await admin('FUNCTION', 'FLUSH');
    for (const user of ['gateway', 'metering', 'billing'] as const) {
      await expect(admissionOf(user)).rejects.toThrow(
        new RegExp(
          '^REDIS_URL \\(redis://127\\.0\\.0\\.1:\\d+\\): Redis lacks our functions, ' +
            'and the user lacks rights to load them: let `tollgate redis load --keep` run',
        ),
      );
      expect(await loadAs(user)).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^tollgate: .*the user lacks rights.*\n$/),
      });
    }
    await expect(credentialsOf('auth')).rejects.toThrow(/Redis lacks our functions/);
    expect(await loadAs('functions')).toEqual({ code: 0, stderr: '' });
    // Safe to repeat.
    expect(await loadAs('functions')).toEqual({ code: 0, stderr: '' });
    for (const user of ['gateway', 'metering', 'billing'] as const) await admissionOf(user);
    await credentialsOf('auth');
  });

  it('are named if somebody replaced them', async () => {
    const [name = ''] = /tollgate_credentials_v1_\w+/.exec(await admin('FUNCTION', 'LIST')) ?? [];
    const other = `#!lua name=${name}\nredis.register_function('${name}_read', function() return 1 end)`;
    await admin('FUNCTION', 'LOAD', 'REPLACE', other);
    expect(await loadAs('functions')).toEqual({
      code: 1,
      stderr: expect.stringMatching(new RegExp(`the library ${name} is not ours: someone replaced it`)),
    });
    await admin('FUNCTION', 'DELETE', name);
    expect(await loadAs('functions')).toMatchObject({ code: 0 });
  });

  it('are loaded again when Redis lost them, without a restart', async () => {
    const keeper = spawn(process.execPath, [CLI, 'redis', 'load', '--keep'], {
      env: { ...process.env, REDIS_URL: urlOf('functions') },
    });
    try {
      const gateway = await eventually(() => admissionOf('gateway'), { timeoutMs: 60_000 });
      fixture.store = gateway;
      await fixture.setBalance(BALANCE);
      // The store asks billing for a tenant that it does not know. Until the answer arrives, requests get 503.
      await eventually(() => fixture.hold());
      await admin('FUNCTION', 'FLUSH');
      await admin('FLUSHALL');
      // The emptied store asks again.
      await eventually(() => fixture.hold(), { timeoutMs: 60_000 });
      const ended = new Promise((done) => keeper.once('exit', (code) => done(code)));
      keeper.kill('SIGTERM');
      expect(await ended).toBe(0);
    } finally {
      keeper.kill('SIGKILL');
    }
  });
});

describe('with its own user and without a refusal,', () => {
  beforeEach(async () => {
    expect(await loadAs('functions')).toMatchObject({ code: 0 });
    await admin('ACL', 'LOG', 'RESET');
  });
  afterEach(async () => expect((await admin('ACL', 'LOG')).trim()).toBe(''));

  it('each service does all its work with holds and credit', async () => {
    const [gateway, metering, billing] = await Promise.all(
      (['gateway', 'metering', 'billing'] as const).map((user) => admissionOf(user)),
    );
    const f = fixture;
    // The gateway: balance updates, a look, a hold with an extension and a heartbeat, and each way in which it ends.
    f.store = gateway!;
    await f.setBalance(BALANCE);
    await f.admit().catch(() => {});
    await eventually(async () => expect(await f.admit()).toMatchObject({ kind: 'held' }));
    expect(await f.look()).toMatchObject({ kind: 'clear' });
    const claim = { id: newId('key'), fingerprint: 'print' };
    const [settled, voided, idle] = [await f.hold(), await f.hold(), await f.hold()];
    const dead = await f.hold({ claim });
    const more = { id: settled, tenantId: f.tenantId, wantNanos: 10n * TOKEN_NANOS, minNanos: TOKEN_NANOS };
    expect(await gateway!.extend([more])).toMatchObject([{ kind: 'extended' }]);
    expect(await f.progress(dead, 3)).toBe(true);
    expect(await f.settle(settled, TOKEN_NANOS)).toMatchObject({ kind: 'settled' });
    expect(await f.void(voided)).toBe(true);
    await gateway!.check();
    // Metering: expired holds, settled holds without a confirmation, and tenants without holds.
    f.nowMs += 120_000;
    const swept = await metering!.sweep({ limit: 100, confirmAfterMs: 1_000 });
    expect(swept.map(({ id }) => id).sort()).toEqual([settled, dead].sort());
    expect(swept.map(({ id }) => id)).not.toContain(idle);
    expect(await gateway!.recall([{ tenantId: f.tenantId, claimId: claim.id }])).toMatchObject([{ kind: 'settled' }]);
    await metering!.check();
    // Billing: the release of charged holds, a budget, a refund, and the reads of reconcile.
    f.store = billing!;
    const budgets = [{ keyId: f.keyId, version: 1n, nanos: BALANCE }];
    await f.setBalance(BALANCE, { releases: [settled], budgets });
    expect(await billing!.withdraw({ tenantId: f.tenantId, version: 9n, nanos: 5n })).toEqual({ kind: 'withdrawn' });
    expect(await f.sums()).toMatchObject({ settledHolds: 1, pendingHolds: 0 });
    expect(await billing!.snapshot({ limit: 100 })).not.toEqual([]);
    expect(await billing!.holds({ tenantId: f.tenantId, limit: 10 })).toMatchObject([{ id: dead }]);
    await f.setBalance(BALANCE, { releases: [dead] });
    await billing!.check();
    expect(await metering!.sweep({ limit: 100, confirmAfterMs: 1_000 })).toEqual([]);
    // A tenant that the store does not know, for each service that asks the books for it.
    const unknown = newId('ten');
    await expect(billing!.withdraw({ tenantId: unknown, version: 2n, nanos: 5n })).rejects.toThrow(/not known yet/);
    await eventually(() => billing!.withdraw({ tenantId: unknown, version: 2n, nanos: 5n }));
  });

  it('Redis has all their data after a restart', async () => {
    const f = fixture;
    f.store = await admissionOf('gateway');
    await f.setBalance(BALANCE);
    await eventually(async () => expect(await f.admit()).toMatchObject({ kind: 'held' }));
    const settled = await f.hold();
    await f.settle(settled, TOKEN_NANOS);
    f.store = await admissionOf('billing');
    const before = await f.sums();
    expect(before).toMatchObject({ pendingHolds: 1, settledHolds: 1 });
    await redis.stop();
    await redis.start();
    expect(await f.sums()).toEqual(before);
  });

  it.each(['gateway', 'billing'] as const)('%s waits for the configured number of replicas', async (user) => {
    fixture.store = await admissionOf(user, 1);
    await fixture.setBalance(BALANCE);
    const attempt = () => fixture.store.withdraw({ tenantId: fixture.tenantId, version: 9n, nanos: 5n });
    // The right answer, because there is no replica.
    await eventually(() => expect(attempt()).rejects.toThrow(/only 0 of 1 replicas were reached/));
  });

  it('auth writes credentials, and the gateway reads them, is notified, and reports an older copy', async () => {
    const auth = await credentialsOf('auth');
    const gateway = await credentialsOf('gateway');
    const record = aRecord();
    let fills = 0;
    auth.refillWith(async () => {
      fills++;
      await auth.put([record]);
    });
    await eventually(async () => expect(await gateway.lookup(record.hash)).toEqual(record));
    const revoked = { ...record, version: 2, revokedAtMs: 1 };
    await auth.put([revoked]);
    await eventually(async () => expect(await gateway.lookup(record.hash)).toEqual(revoked));
    await gateway.check();
    // Auth has ended, and Redis has an older copy. The gateway reports it.
    await auth.close();
    opened.splice(opened.indexOf(auth), 1);
    await admin('HSET', 'tgc:{credentials}:meta', 'number', '1');
    await eventually(async () =>
      expect((await admin('HEXISTS', 'tgc:{credentials}:meta', 'complete')).trim()).toBe('0'),
    );
    expect(fills).toBe(1);
  });
});

describe('Redis refuses', () => {
  // The client warns that it may not call INFO.
  beforeAll(() => jest.spyOn(console, 'warn').mockImplementation(() => {}));

  it.each([...REDIS_USERS, 'health'] as const)('every command that %s does not need', async (user) => {
    const client = openClient(readRedisUrl(`redis://${user}:${passwordOf(user)}@127.0.0.1:${redis.port}`), 'test');
    await client.connect();
    const allowed: string[] = [];
    for (const line of [...NOBODY, ...OWN[user]]) {
      const [command = '', ...args] = line.split(' ');
      const answer = await client.call(command, ...args).catch((error: Error) => error.message);
      if (!REFUSED.test(String(answer))) allowed.push(`${line} → ${String(answer)}`);
    }
    client.disconnect();
    expect(allowed).toEqual([]);
  });

  it('every command without a password', async () => {
    const ask = (...command: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
    expect(await ask('PING')).toMatch(/NOAUTH/);
    expect(await ask('HSET', TENANT_KEY, 'balance', '1')).toMatch(/NOAUTH/);
    expect(await ask('AUTH', 'default', '')).toMatch(/WRONGPASS/);
    expect(await ask('AUTH', 'gateway', 'guess')).toMatch(/WRONGPASS/);
    expect((await as('health', 'PING')).trim()).toBe('PONG');
  });
});

describe('a password of Redis', () => passwordTests({ loadAs, credentialsOf, admin, urlOf, passwordOf, kept }));

describe('the ACL file', () => {
  it('contains no password, and has the lines that `tollgate redis rights` prints', () => {
    const shown = execFileSync(process.execPath, [CLI, 'redis', 'rights'], { encoding: 'utf8' }).trim().split('\n');
    const own = secret('redis-users').replace(/#[0-9a-f]{64}/g, '>PASSWORD');
    for (const line of shown) expect(own.split('\n')).toContain(line);
    expect(shown).toHaveLength(REDIS_USERS.length);
    for (const user of [...REDIS_USERS, 'admin'] as const)
      expect(secret('redis-users')).not.toContain(passwordOf(user));
  });
});
