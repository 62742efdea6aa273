import { newId, SCOPES } from '@tollgate/contracts';
import { inForceAfterMs } from '@tollgate/testing';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

const create = (over: { scopes?: string[]; expiresAt?: string } = {}) =>
  auth.request('auth.tokens.create', { tenantId, name: 'ops', ...minted('token'), scopes: ['keys:read'], ...over });
const listed = async (id: string) =>
  (await auth.request('auth.tokens.list', { tenantId })).data.find((row) => row.id === id)!;

it('a token is in force at the edge when it is answered, with its scopes', async () => {
  const { hash, last4 } = minted('token');
  const token = await auth.request('auth.tokens.create', { tenantId, name: 'ops', hash, last4, scopes: [...SCOPES] });
  expect(token).toEqual({
    id: expect.stringMatching(/^tok_/),
    name: 'ops',
    last4,
    scopes: [...SCOPES],
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    lastUsedAt: null,
    expiresAt: null,
    revokedAt: null,
  });
  expect(await listed(token.id)).toEqual(token);
  expect(await auth.edge.lookup(hash)).toMatchObject({
    kind: 'token',
    id: token.id,
    tenantId,
    profile: '',
    scopes: SCOPES,
    version: 1,
  });
});

it('a token without scopes, with an unknown scope, or with a scope twice is refused', async () => {
  for (const scopes of [[], ['keys:admin'], ['keys:read', 'keys:read'], ['keys:read', '']]) {
    const request = { tenantId, name: 'ops', ...minted('token'), scopes };
    expect(await auth.refusal('auth.tokens.create', request)).toBe('invalid_scope');
  }
});

it('nobody creates a token for a tenant that does not exist', async () => {
  const request = { tenantId: newId('ten'), name: 'ops', ...minted('token'), scopes: ['keys:read'] };
  expect(await auth.refusal('auth.tokens.create', request)).toBe('not_found');
});

it('a list has the tokens of one tenant, newest first, in pages', async () => {
  const ids = [await create(), await create(), await create()].map((token) => token.id);
  await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
  const first = await auth.request('auth.tokens.list', { tenantId, limit: 2 });
  expect(first).toMatchObject({ data: [{ id: ids[2] }, { id: ids[1] }], nextCursor: ids[1] });
  const second = await auth.request('auth.tokens.list', { tenantId, limit: 2, after: ids[1]! });
  expect(second).toMatchObject({ data: [{ id: ids[0] }], nextCursor: null });
});

it('a list refuses an `after` that is not a token of this tenant', async () => {
  expect(await auth.refusal('auth.tokens.list', { tenantId, after: newId('tok') })).toBe('invalid_parameter');
});

it('a revocation is in the credential store when it is answered, and at every gateway within a second', async () => {
  const { hash, last4 } = minted('token');
  const { id } = await auth.request('auth.tokens.create', {
    tenantId,
    name: 'ops',
    hash,
    last4,
    scopes: ['keys:read'],
  });
  await auth.edge.lookup(hash);
  const { revokedAt } = await auth.request('auth.tokens.revoke', { tenantId, id });
  const revoked = { revokedAtMs: Date.parse(revokedAt) };
  const tookMs = await inForceAfterMs(async () => expect(await auth.edge.lookup(hash)).toMatchObject(revoked));
  expect(tookMs).toBeLessThan(1_000);
  expect(await auth.request('auth.tokens.revoke', { tenantId, id })).toEqual({ revokedAt });
  expect(await listed(id)).toMatchObject({ revokedAt });
});

it('a revocation refuses an unknown id, a token of another tenant, and a key as a token', async () => {
  const { id } = await create();
  const key = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
  expect(await auth.refusal('auth.tokens.revoke', { tenantId: await auth.tenant(), id })).toBe('not_found');
  for (const unknown of [newId('tok'), key.id]) {
    expect(await auth.refusal('auth.tokens.revoke', { tenantId, id: unknown })).toBe('not_found');
  }
});

describe('lastUsedAt', () => {
  const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

  it('advances to the latest use of a batch, and never goes back', async () => {
    const [a, b] = [await create(), await create()];
    const [late, early] = [ago(1_000), ago(60_000)];
    const uses = [
      { id: a.id, at: late },
      { id: b.id, at: early },
      { id: a.id, at: early },
    ];
    expect(await auth.request('auth.tokens.used', { uses })).toEqual({ recorded: 2 });
    expect(await listed(a.id)).toMatchObject({ lastUsedAt: late });
    expect(await listed(b.id)).toMatchObject({ lastUsedAt: early });
    await auth.request('auth.tokens.used', { uses: [{ id: a.id, at: early }] });
    await auth.request('auth.tokens.used', { uses: [{ id: b.id, at: late }] });
    expect(await listed(a.id)).toMatchObject({ lastUsedAt: late });
    expect(await listed(b.id)).toMatchObject({ lastUsedAt: late });
  });

  it("stays at the current time when a gateway's clock runs ahead", async () => {
    const { id } = await create();
    await auth.request('auth.tokens.used', { uses: [{ id, at: ago(-3_600_000) }] });
    expect(Date.parse((await listed(id)).lastUsedAt!)).toBeLessThanOrEqual(Date.now() + 1_000);
  });

  it('ignores ids that are not tokens, and accepts an empty batch', async () => {
    const key = await auth.request('auth.keys.create', { tenantId, name: 'k', ...minted('key') });
    const uses = [newId('tok'), key.id, 'x'].map((id) => ({ id, at: ago(0) }));
    expect(await auth.request('auth.tokens.used', { uses })).toEqual({ recorded: 0 });
    expect(await auth.request('auth.tokens.used', { uses: [] })).toEqual({ recorded: 0 });
  });

  it('accepts concurrent batches from several gateways that name the tokens in different orders', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => create()));
    const at = ago(500);
    const uses = tokens.map(({ id }) => ({ id, at }));
    await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        auth.request('auth.tokens.used', { uses: i % 2 ? uses : uses.toReversed() }),
      ),
    );
    for (const { id } of tokens) expect(await listed(id)).toMatchObject({ lastUsedAt: at });
  });

  it('is no change for the edge, so nothing is projected again', async () => {
    const { id } = await create();
    await auth.request('auth.tokens.used', { uses: [{ id, at: ago(0) }] });
    expect(await database.query('SELECT version FROM auth.credential WHERE id = $1', [id])).toEqual([{ version: 1 }]);
  });
});
