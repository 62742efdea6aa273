import { isWellFormedCredential } from '@tollgate/contracts';
import { useServices } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

// Each command is a process.
// Billing's watch would repair the store first.
const services = useServices({ watchEveryMs: null });
const directory = useDataDirectory(services);
const tollgate = (args: string[], env: Record<string, string> = {}) =>
  runTollgate(args, { TOLLGATE_DATA_DIR: directory.path, ...env });

/** Runs a command with --json. Expects one document on stdout, nothing on stderr, and exit code 0. */
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

describe('the command line', () => {
  it('creates a tenant, its credit and its credentials, and revokes them, with JSON output', async () => {
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
    const repeat = { ...credit, created: false };
    expect(await json('credit', 'add', tenant.id, '10.05', '--ref', 'r1')).toEqual(repeat);
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
    const update = ['key', 'update', tenant.id, key.id];
    const changes = ['--name', 'batch', '--owner', 'anna', '--tags', 'a,b', '--no-expiry'];
    expect(await json(...update, ...changes)).toMatchObject({
      name: 'batch',
      owner: 'anna',
      tags: ['a', 'b'],
      expiresAt: null,
    });
    expect(await json(...update, '--no-owner', '--tags', '')).toMatchObject({ name: 'batch', owner: null, tags: [] });
    expect((await tollgate(update)).code).toBe(2);
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

  it('creates an operator token, works with it within its scopes, and revokes it', async () => {
    const made = await json('operator', 'token', 'create', 'anna', '--scopes', 'read,operators');
    expect(made).toMatchObject({ name: 'anna', scopes: ['read', 'operators'], token: expect.stringMatching(/^tgo_/) });
    const env = { TOLLGATE_OPERATOR_SECRET: made.token };
    expect((await tollgate(['operator', 'token', 'list'], env)).stdout).toMatch(/anna +….{4}  read,operators/);
    const refused = await tollgate(['tenant', 'create', 'Acme'], env);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      'tollgate: This endpoint needs an operator token with the scope tenants.\n',
    ]);
    const log = await json('audit', '--action', 'operator.create');
    expect(log[0]).toMatchObject({ by: { kind: 'secret' }, target: made.id, after: { name: 'anna' } });
    expect(await text('audit', '--target', made.id)).toMatch(
      /^TIME +BY +ACTION[^]*secret +operator\.create[^]*name: anna/,
    );
    expect(await text('audit', '--csv')).toMatch(/^id,at,author_kind,/);
    const byName = await tollgate(['operator', 'token', 'revoke', 'anna']);
    expect([byName.code, byName.stderr]).toEqual([
      1,
      "tollgate: No operator token has the id 'anna'. See: tollgate operator token list\n",
    ]);
    await json('operator', 'token', 'revoke', made.id);
    expect((await tollgate(['tenant', 'list'], env)).stderr).toContain('has been revoked');
    const unknown = await tollgate(['operator', 'token', 'create', 'x', '--scopes', 'all']);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('There is no scope "all".')]);
  });

  it('prints tables, amounts with their currency, and the next command for people', async () => {
    const made = await text('tenant', 'create', 'Evil \u001b[31m name', '--plan', 'default').catch(() => '');
    expect(made).toBe(''); // Control characters are refused.
    const tenant = /ten_\w+/.exec(await text('tenant', 'create', 'Widgets & Co'))![0];
    expect(await text('tenant', 'list')).toMatch(
      new RegExp(`^ID +NAME +PLAN +STATUS +CREATED +EXTERNAL ID\n${tenant}  Widgets & Co +default  active`),
    );
    expect(await text('credit', 'add', tenant, '25')).toMatch(
      /^25\.00 USD added \(ref .+\)\. Balance: 25\.00 USD\.\n$/,
    );
    expect(await text('credit', 'show', tenant)).toMatch(
      new RegExp(
        'Balance: +25\\.00 USD\nNot yet posted: +0\\.000000000 USD\n' +
          'Spendable now: .*\n\nTIME .*\n.* topup +25\\.00 USD +manual',
      ),
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

  it('shows wrong data of the admission store, then repairs it from the books', async () => {
    const { id: tenant } = await json('tenant', 'create', 'Forged');
    await json('credit', 'add', tenant, '10', '--ref', 'r1');
    const forge = () =>
      services.database.query(
        'UPDATE admission.tenant SET version = 999999999, balance_nanos = 7, suspended = true WHERE tenant_id = $1',
        [tenant],
      );
    await forge();
    const changes = [
      { what: 'version', from: '999999999', to: '1' },
      { what: 'balanceNanos', from: '7', to: '10000000000' },
      { what: 'suspended', from: 'true', to: 'false' },
    ];
    const planned = { tenantId: tenant, changes, droppedHolds: 0, repaired: false };
    expect(await json('tenant', 'repair', tenant, '--dry-run')).toEqual(planned);
    const asked = await tollgate(['reconcile', '--repair']);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('--yes')]);
    const { code, stdout, stderr } = await tollgate(['reconcile', '--repair', '--yes']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('The books agree.')]);
    expect(stderr).toMatch(/version +999999999 +1\n[^]*repaired/);
    await forge();
    const done = await tollgate(['tenant', 'repair', tenant]);
    expect([done.code, done.stdout]).toEqual([0, 'Repaired from the books.\n']);
    expect(done.stderr).toMatch(/balanceNanos +7 +10000000000/);
    expect(await json('tenant', 'repair', tenant)).toEqual({ ...planned, changes: [], repaired: true });
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
