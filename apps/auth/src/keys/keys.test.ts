import { mintCredential, newId } from '@tollgate/contracts';
import { eventually, inForceAfterMs } from '@tollgate/testing';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

it('a key is in force at the edge when it is answered, with its tenant, plan, profile and expiry', async () => {
  const expiresAt = inAnHour();
  const { hash, last4 } = minted('key');
  const key = await auth.request('auth.keys.create', {
    tenantId,
    name: 'ci',
    hash,
    last4,
    profile: 'batch',
    expiresAt,
  });
  expect(key).toEqual({
    id: expect.stringMatching(/^key_/),
    name: 'ci',
    last4,
    status: 'active',
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    lastUsedAt: null,
    expiresAt,
    rotatedAt: null,
    formerUntil: null,
    profile: 'batch',
    owner: null,
    tags: [],
    models: null,
  });
  expect(await auth.edge.lookup(hash)).toEqual({
    hash,
    kind: 'key',
    id: key.id,
    tenantId,
    plan: 'free',
    profile: 'batch',
    scopes: [],
    models: null,
    expiresAtMs: Date.parse(expiresAt),
    revokedAtMs: null,
    version: 1,
  });
});

it("a key without a profile gets the first profile of its tenant's plan", async () => {
  const onPro = { tenantId: await auth.tenant('pro'), name: 'k', ...minted('key') };
  await auth.request('auth.keys.create', onPro);
  expect(await auth.edge.lookup(onPro.hash)).toMatchObject({ plan: 'pro', profile: 'large', expiresAtMs: null });
});

it('one key is read with its profile, and not by an unknown id, by a token or for another tenant', async () => {
  const other = await auth.tenant();
  const { hash, last4 } = minted('key');
  const row = await auth.request('auth.keys.create', { tenantId, profile: 'batch', name: 'k', hash, last4 });
  expect(await auth.request('auth.keys.get', { tenantId, id: row.id })).toEqual(row);
  for (const [tenant, id] of [
    [other, row.id],
    [tenantId, newId('key')],
    [tenantId, 'key_1'],
    [tenantId, newId('tok')],
  ] as const)
    expect(await auth.refusal('auth.keys.get', { tenantId: tenant, id })).toBe('not_found');
});

it('a key gets no unknown profile, none of another plan, and none of a plan that was removed', async () => {
  for (const profile of ['gold', 'large', '']) {
    expect(await auth.refusal('auth.keys.create', { tenantId, name: 'k', ...minted('key'), profile })).toBe(
      'invalid_profile',
    );
  }
  const onPro = await auth.tenant('pro');
  const pro = auth.config.plans.pop()!;
  expect(await auth.refusal('auth.keys.create', { tenantId: onPro, name: 'k', ...minted('key') })).toBe(
    'invalid_profile',
  );
  auth.config.plans.push(pro);
});

it('nobody creates a key for a tenant that does not exist', async () => {
  const request = { tenantId: newId('ten'), name: 'k', ...minted('key') };
  expect(await auth.refusal('auth.keys.create', request)).toBe('not_found');
});

it('a list has the keys of one tenant, newest first, in pages', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 5; i++)
    ids.push((await auth.request('auth.keys.create', { tenantId, name: `k${i}`, ...minted('key') })).id);
  await auth.request('auth.tokens.create', { tenantId, name: 't', ...minted('token'), scopes: ['keys:read'] });
  await auth.request('auth.keys.create', { tenantId: await auth.tenant(), name: 'other', ...minted('key') });
  const first = await auth.request('auth.keys.list', { tenantId, limit: 2 });
  expect(first).toMatchObject({ data: [{ id: ids[4] }, { id: ids[3] }], nextCursor: ids[3] });
  const second = await auth.request('auth.keys.list', { tenantId, limit: 2, after: ids[3]! });
  expect(second).toMatchObject({ data: [{ id: ids[2] }, { id: ids[1] }], nextCursor: ids[1] });
  const third = await auth.request('auth.keys.list', { tenantId, limit: 2, after: ids[1]! });
  expect(third).toMatchObject({ data: [{ id: ids[0] }], nextCursor: null });
  expect(Object.keys(first.data[0]!).sort()).toEqual([
    ...['createdAt', 'expiresAt', 'formerUntil', 'id', 'last4', 'lastUsedAt', 'models', 'name', 'owner'],
    ...['profile', 'rotatedAt', 'status', 'tags'],
  ]);
});

it('a list refuses an `after` that is not a key of this tenant', async () => {
  const other = await auth.request('auth.keys.create', { tenantId: await auth.tenant(), name: 'k', ...minted('key') });
  const token = await auth.request('auth.tokens.create', {
    tenantId,
    name: 't',
    ...minted('token'),
    scopes: ['keys:read'],
  });
  for (const after of [newId('key'), other.id, token.id, 'key_1', '', '\0']) {
    expect(await auth.refusal('auth.keys.list', { tenantId, after })).toBe('invalid_parameter');
  }
});

it('a revocation is in the credential store when it is answered, and at every gateway within a second', async () => {
  const { hash, last4 } = minted('key');
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4 });
  await auth.edge.lookup(hash);
  const { revokedAt } = await auth.request('auth.keys.revoke', { tenantId, id });
  const revoked = { revokedAtMs: Date.parse(revokedAt), version: 2 };
  const tookMs = await inForceAfterMs(async () => expect(await auth.edge.lookup(hash)).toMatchObject(revoked));
  expect(tookMs).toBeLessThan(1_000);
  expect(await auth.request('auth.keys.revoke', { tenantId, id })).toEqual({ revokedAt });
  expect((await auth.request('auth.keys.list', { tenantId })).data[0]).toMatchObject({ id, status: 'revoked' });
  expect(await database.query('SELECT version, projected_version FROM auth.credential WHERE id = $1', [id])).toEqual([
    { version: 2, projected_version: 2 },
  ]);
});

it('concurrent revocations of one key all get the same answer', async () => {
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => auth.request('auth.keys.revoke', { tenantId, id })),
  );
  expect(new Set(answers.map((answer) => answer.revokedAt)).size).toBe(1);
});

it('a revocation refuses an unknown id, a key of another tenant, and a token as a key', async () => {
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
  const token = await auth.request('auth.tokens.create', {
    tenantId,
    name: 't',
    ...minted('token'),
    scopes: ['keys:read'],
  });
  expect(await auth.refusal('auth.keys.revoke', { tenantId: await auth.tenant(), id })).toBe('not_found');
  for (const unknown of [newId('key'), token.id, 'key_1', '', '\0']) {
    expect(await auth.refusal('auth.keys.revoke', { tenantId, id: unknown })).toBe('not_found');
  }
  expect((await auth.request('auth.keys.list', { tenantId })).data[0]).toMatchObject({ id, status: 'active' });
});

it('a key expires without a write, and reports revoked if it is also revoked', async () => {
  const expiresAt = new Date(Date.now() + 50).toISOString();
  const { id } = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key'), expiresAt });
  const status = async () => (await auth.request('auth.keys.list', { tenantId })).data[0]!.status;
  await eventually(async () => expect(await status()).toBe('expired'));
  await auth.request('auth.keys.revoke', { tenantId, id });
  expect(await status()).toBe('revoked');
});

it('no table stores the value of a credential: only its hash and its last four characters are kept', async () => {
  const values = [mintCredential('key'), mintCredential('token')];
  const [key, token] = values.map(({ hash, last4 }) => ({ hash, last4 }));
  await auth.request('auth.keys.create', { tenantId, name: 'k', ...key! });
  await auth.request('auth.tokens.create', { tenantId, name: 't', ...token!, scopes: ['keys:read'] });
  const tables = await database.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
      WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const rows: string[] = [];
  for (const { name } of tables) {
    rows.push(...(await database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)).map(({ row }) => row));
  }
  const all = rows.join('\n');
  for (const { value, hash } of values) {
    expect(all).toContain(hash);
    expect(all).not.toContain(value);
    expect(all).not.toContain(value.slice(-12));
  }
  const columns = await database.query<{ column: string }>(
    `SELECT column_name AS column
     FROM information_schema.columns
     WHERE table_schema = 'auth' AND table_name = 'credential'
     ORDER BY 1`,
  );
  expect(columns.map(({ column }) => column)).toEqual(
    [
      'created_at',
      'expires_at',
      'former_until',
      'hash',
      'id',
      'kind',
      'last4',
      'last_used_at',
      'models',
      'name',
      'owner',
      'profile',
      'projected_version',
    ].concat(['revoked_at', 'rotated_at', 'scopes', 'tags', 'tenant_id', 'version']),
  );
});

it('lastUsedAt advances to the latest use, never back, for keys alone, and is no change for the edge', async () => {
  const key = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
  const token = await auth.request('auth.tokens.create', {
    tenantId,
    name: 't',
    ...minted('token'),
    scopes: ['keys:read'],
  });
  const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
  const [late, early] = [ago(1_000), ago(60_000)];
  const used = (...uses: { id: string; at: string }[]) => auth.request('auth.keys.used', { uses });
  expect(await used({ id: key.id, at: late }, { id: token.id, at: late }, { id: newId('key'), at: late })).toEqual({
    recorded: 1,
  });
  await used({ id: key.id, at: early });
  const lastUse = async () => (await auth.request('auth.keys.get', { tenantId, id: key.id })).lastUsedAt;
  expect(await lastUse()).toBe(late);
  await used({ id: key.id, at: ago(-3_600_000) });
  expect(Date.parse((await lastUse())!)).toBeLessThanOrEqual(Date.now() + 1_000);
  // One that no gateway of ours sends keeps no other from being recorded.
  const now = ago(0);
  const odd = ['2026-02-30T00:00:00.000Z', '0000-01-01T00:00:00.000Z', 'now'].map((at) => ({ id: key.id, at }));
  expect(await used(...odd, { id: 'key_\0', at: now }, { id: key.id, at: now })).toEqual({ recorded: 1 });
  expect((await auth.request('auth.tokens.list', { tenantId })).data).toMatchObject([{ lastUsedAt: null }]);
  expect(await database.query('SELECT version FROM auth.credential WHERE id = $1', [key.id])).toEqual([{ version: 1 }]);
});
