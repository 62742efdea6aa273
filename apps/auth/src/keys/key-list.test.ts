import { newId, type WantedKey } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

async function apply(keys: WantedKey[], { revokeOthers = false, dryRun = false } = {}) {
  const secrets = keys.map(() => minted('key'));
  const reply = await auth.request('auth.keys.apply', { tenantId, keys, revokeOthers, ...(!dryRun && { secrets }) });
  return { ...reply, secrets };
}
const listed = async () => (await auth.request('auth.keys.list', { tenantId, limit: 200 })).data;
/** Returns a row while a process waits for the transaction of this test. */
const WAITS_FOR_US = 'SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))';
const changes = async () =>
  (await auth.request('auth.audit.list', { tenantId, limit: 200 })).data.map(({ action }) => action);

describe('a list of keys', () => {
  it('is made as a whole: new keys work, others change, and the rest is revoked on demand', async () => {
    const first = await apply([{ name: 'a', profile: 'batch', tags: ['x'] }, { name: 'b' }, { name: 'c' }]);
    expect(first).toMatchObject({ updated: [], revoked: [], unchanged: 0, others: 0, inForce: true });
    expect(first.created.map(({ name, profile }) => [name, profile])).toEqual([
      ['a', 'batch'],
      ['b', 'small'],
      ['c', 'small'],
    ]);
    for (const [index, { id }] of first.created.entries())
      expect(await auth.edge.lookup(first.secrets[index]!.hash)).toMatchObject({ id, revokedAtMs: null });

    const wanted: WantedKey[] = [
      { name: 'a', tags: ['x'] },
      { name: 'b', profile: 'batch', owner: 'anna', models: ['m-1'] },
      { name: 'd' },
    ];
    expect(await apply(wanted, { dryRun: true })).toMatchObject({ revoked: [], others: 1 });
    const planned = await apply(wanted, { revokeOthers: true, dryRun: true });
    expect(planned).toMatchObject({
      created: [{ name: 'd', id: null }],
      updated: [
        {
          row: { name: 'b', profile: 'batch', models: ['m-1'] },
          fields: ['profile', 'owner', 'models'],
          before: { profile: 'small', owner: null, models: null },
        },
      ],
      revoked: [{ name: 'c' }],
      ...{ unchanged: 1, others: 0 },
    });
    expect(await listed()).toHaveLength(3);
    expect(await changes()).toEqual(['key.create', 'key.create', 'key.create', 'tenant.create']);

    const done = await apply(wanted, { revokeOthers: true });
    expect(done).toMatchObject({ created: [{ name: 'd' }], updated: planned.updated, revoked: planned.revoked });
    expect((await changes()).slice(0, 3).sort()).toEqual(['key.create', 'key.revoke', 'key.update']);
    await eventually(async () => {
      const [a, b, c] = await Promise.all(first.secrets.map(({ hash }) => auth.edge.lookup(hash)));
      expect(a).toMatchObject({ profile: 'batch', version: 1 });
      expect(b).toMatchObject({ profile: 'batch', models: ['m-1'], version: 2, revokedAtMs: null });
      expect(c).toMatchObject({ revokedAtMs: expect.any(Number) });
    });
    expect(await apply(wanted, { revokeOthers: true })).toMatchObject({
      ...{ created: [], updated: [], revoked: [] },
      unchanged: 3,
    });
    expect(await changes()).toHaveLength(7);
  });

  it('is made not at all when one key is wrong', async () => {
    const wrong: [WantedKey[], string][] = [
      [[{ name: 'a' }, { name: 'b', profile: 'gold' }], 'invalid_profile'],
      [[{ name: 'a' }, { name: 'a' }], 'invalid_parameter'],
    ];
    for (const [keys, code] of wrong) {
      const secrets = keys.map(() => minted('key'));
      expect(await auth.refusal('auth.keys.apply', { tenantId, keys, secrets, revokeOthers: true })).toBe(code);
    }
    const apply = { tenantId, keys: wrong[0]![0], revokeOthers: false };
    await expect(auth.request('auth.keys.apply', apply)).rejects.toThrow(/^keys\.1\.profile: profile must name/);
    const keys = Array.from({ length: 501 }, (_, i) => ({ name: `k${i}` }));
    expect(await auth.refusal('auth.keys.apply', { tenantId, keys, revokeOthers: false })).toBe('invalid_parameter');
    for (let time = 0; time < 2; time++)
      await auth.request('auth.keys.create', { tenantId, name: 'twice', ...minted('key') });
    const twice = { tenantId, keys: [{ name: 'new' }, { name: 'twice' }], revokeOthers: false };
    expect(await auth.refusal('auth.keys.apply', twice)).toBe('ambiguous_name');
    expect(await listed()).toHaveLength(2);
  });

  it('touches no key of another tenant, and an unknown or closed tenant has none', async () => {
    await apply([{ name: 'a' }]);
    const others = await listed();
    const former = tenantId;
    tenantId = await auth.tenant();
    expect(await apply([{ name: 'b' }], { revokeOthers: true })).toMatchObject({ revoked: [] });
    await auth.request('auth.tenants.close', { tenantId });
    const keys = [{ name: 'a' }];
    expect(await auth.refusal('auth.keys.apply', { tenantId, keys, revokeOthers: false })).toBe('tenant_closed');
    const nobody = newId('ten');
    expect(await auth.refusal('auth.keys.apply', { tenantId: nobody, keys, revokeOthers: false })).toBe('not_found');
    tenantId = former;
    expect(await listed()).toEqual(others);
  });

  it('has each name once, also when it is applied several times at once', async () => {
    const keys = Array.from({ length: 20 }, (_, i) => ({ name: `k${i}` }));
    const replies = await Promise.all(Array.from({ length: 4 }, () => apply(keys)));
    expect(replies.map(({ created }) => created.length).sort()).toEqual([0, 0, 0, 20]);
    expect((await listed()).map(({ name }) => name).sort()).toEqual(keys.map(({ name }) => name).sort());
  });

  it('leaves alone a key that is revoked meanwhile, and makes another one of its name', async () => {
    const { created } = await apply([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    const [a, b, c] = created.map(({ id }) => id!);
    await database.query('BEGIN');
    await database.query('UPDATE auth.credential SET revoked_at = now(), version = version + 1 WHERE id = ANY($1)', [
      [a, b],
    ]);
    const applied = apply([{ name: 'a', tags: ['x'] }], { revokeOthers: true });
    applied.catch(() => {});
    await eventually(async () => expect(await database.query(WAITS_FOR_US)).toHaveLength(1));
    await database.query('COMMIT');
    expect(await applied).toMatchObject({ created: [{ name: 'a' }], updated: [], revoked: [{ id: c }] });
    const states = (await listed()).map(({ id, status }) => [id, status]);
    expect(states).toEqual([
      [(await applied).created[0]!.id, 'active'],
      [c, 'revoked'],
      [b, 'revoked'],
      [a, 'revoked'],
    ]);
  });
});
