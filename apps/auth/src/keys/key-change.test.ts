import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { minted, useAuth } from '../running-auth.fixture';

const { auth, database } = useAuth();
let tenantId: string;
beforeEach(async () => {
  tenantId = await auth.tenant();
});

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

describe('a change of a key', () => {
  const issue = async (more: object = {}) => {
    const { hash, last4 } = minted('key');
    const key = await auth.request('auth.keys.create', { tenantId, name: 'k', hash, last4, ...more });
    return { ...key, hash };
  };
  const changes = (id: string) =>
    database.query<{ before: object; after: object }>(
      `SELECT before, after FROM auth.audit_log WHERE target = $1 AND action = 'key.update' ORDER BY id`,
      [id],
    );

  it('is at the edge when it is answered, and logged with the fields that changed', async () => {
    const { id, hash } = await issue({ owner: 'anna', tags: ['a', 'b'] });
    const expiresAt = inAnHour();
    const wanted = { name: 'k', profile: 'batch', expiresAt, owner: null, tags: ['b'] };
    const changed = await auth.request('auth.keys.update', { tenantId, id, ...wanted });
    expect(changed).toMatchObject({ id, ...wanted, status: 'active' });
    expect(await auth.request('auth.keys.get', { tenantId, id })).toEqual(changed);
    const atEdge = { profile: 'batch', expiresAtMs: Date.parse(expiresAt), version: 2 };
    expect(await auth.edge.lookup(hash)).toMatchObject(atEdge);
    expect(await auth.request('auth.keys.update', { tenantId, id, ...wanted })).toEqual(changed);
    expect(await auth.edge.lookup(hash)).toMatchObject(atEdge);
    expect(await changes(id)).toEqual([
      {
        before: { profile: 'small', expiresAt: null, owner: 'anna', tags: ['a', 'b'] },
        after: { profile: 'batch', expiresAt, owner: null, tags: ['b'] },
      },
    ]);
  });

  it('touches no other field, and can remove the expiry', async () => {
    const { id, hash } = await issue({ expiresAt: inAnHour(), owner: 'anna' });
    const changed = await auth.request('auth.keys.update', { tenantId, id, expiresAt: null });
    expect(changed).toMatchObject({ name: 'k', owner: 'anna', profile: 'small', expiresAt: null });
    expect(await auth.edge.lookup(hash)).toMatchObject({ expiresAtMs: null });
  });

  it('has its models at the edge, and all of its profile again without them', async () => {
    const { id, hash, models } = await issue({ models: ['m-1'] });
    expect(models).toEqual(['m-1']);
    expect(await auth.edge.lookup(hash)).toMatchObject({ models: ['m-1'], version: 1 });
    expect((await auth.request('auth.keys.update', { tenantId, id, models: ['m-2', 'm-1'] })).models).toHaveLength(2);
    const atEdge = (record: object) =>
      eventually(async () => expect(await auth.edge.lookup(hash)).toMatchObject(record));
    await atEdge({ models: ['m-2', 'm-1'], version: 2 });
    await auth.request('auth.keys.update', { tenantId, id, models: null });
    await atEdge({ models: null, version: 3 });
    expect((await changes(id)).map(({ after }) => after)).toEqual([{ models: ['m-2', 'm-1'] }, { models: null }]);
    expect(await auth.refusal('auth.keys.update', { tenantId, id, models: ['m-1', 'nothing'] })).toBe('invalid_models');
    const made = { tenantId, name: 'k', ...minted('key') };
    expect(await auth.refusal('auth.keys.create', { ...made, models: ['nothing'] })).toBe('invalid_models');
  });

  it('does not make a revoked key valid', async () => {
    const { id, hash } = await issue();
    await auth.request('auth.keys.revoke', { tenantId, id });
    const changed = await auth.request('auth.keys.update', { tenantId, id, expiresAt: inAnHour() });
    expect(changed.status).toBe('revoked');
    expect((await auth.edge.lookup(hash))!.revokedAtMs).not.toBeNull();
  });

  it('refuses a profile of another plan, and a key of another tenant', async () => {
    const { id } = await issue();
    expect(await auth.refusal('auth.keys.update', { tenantId, id, profile: 'large' })).toBe('invalid_profile');
    const other = await auth.tenant();
    for (const [tenant, key] of [
      [other, id],
      [tenantId, newId('key')],
      [tenantId, 'x'],
    ] as const)
      for (const profile of [undefined, 'small', 'nothing'])
        expect(
          await auth.refusal('auth.keys.update', { tenantId: tenant, id: key, name: 'x', ...(profile && { profile }) }),
        ).toBe('not_found');
    expect(await changes(id)).toEqual([]);
  });
});
