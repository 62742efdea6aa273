import { newId } from '@tollgate/contracts';
import { minted, useAuth } from '../running-auth.fixture';

const { auth } = useAuth();
const key = async (tenantId: string, profile?: string) => {
  const { hash, last4 } = minted('key');
  const { id } = await auth.request('auth.keys.create', {
    tenantId,
    name: 'k',
    hash,
    last4,
    ...(profile && { profile }),
  });
  return { id, hash };
};
const changes = async (tenantId: string) =>
  (await auth.request('auth.audit.list', { tenantId, action: 'tenant.update' })).data;

describe('the external id of a tenant', () => {
  it('is unique, may be given later, changed and removed, and finds its tenant', async () => {
    const externalId = `crm-${newId('msg')}`;
    const first = await auth.request('auth.tenants.create', { name: 'Acme', externalId });
    expect(first).toMatchObject({ name: 'Acme', externalId });
    expect(await auth.refusal('auth.tenants.create', { name: 'Acme', externalId })).toBe('external_id_taken');
    const second = await auth.request('auth.tenants.create', { name: 'Acme' });
    const take = { tenantId: second.id, externalId };
    expect(await auth.refusal('auth.tenants.update', take)).toBe('external_id_taken');
    expect(await auth.request('auth.tenants.list', { externalId })).toEqual({ data: [first], nextCursor: null });
    await auth.request('auth.tenants.update', { tenantId: first.id, externalId: null });
    expect((await auth.request('auth.tenants.list', { externalId })).data).toEqual([]);
    const taken = await auth.request('auth.tenants.update', take);
    expect((await auth.request('auth.tenants.list', { externalId })).data).toEqual([taken]);
  });

  it('goes to one of several tenants that ask for it at once', async () => {
    const externalId = `crm-${newId('msg')}`;
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, () => auth.request('auth.tenants.create', { name: 'Acme', externalId })),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

it('a rename is logged once with the name before it, and changes no credential', async () => {
  const tenantId = await auth.tenant();
  const { hash } = await key(tenantId);
  for (let time = 0; time < 2; time++)
    expect(await auth.request('auth.tenants.update', { tenantId, name: 'Next' })).toMatchObject({ name: 'Next' });
  expect(await changes(tenantId)).toMatchObject([{ before: { name: 'Acme' }, after: { name: 'Next' } }]);
  expect(await auth.edge.lookup(hash)).toMatchObject({ version: 1 });
});

describe('a new plan', () => {
  it('is at the edge with all keys when it is answered, those of lost profiles with the named ones', async () => {
    const tenantId = await auth.tenant('free');
    const [small, batch] = [await key(tenantId, 'small'), await key(tenantId, 'batch')];
    const other = await key(await auth.tenant('free'), 'small');
    const plan = { tenantId, plan: 'pro', profiles: { small: 'large', batch: 'large' } };
    for (let time = 0; time < 2; time++)
      expect(await auth.request('auth.tenants.update', plan)).toMatchObject({ id: tenantId, plan: 'pro' });
    for (const { hash } of [small, batch])
      expect(await auth.edge.lookup(hash)).toMatchObject({ plan: 'pro', profile: 'large', version: 2 });
    expect(await auth.edge.lookup(other.hash)).toMatchObject({ plan: 'free', profile: 'small', version: 1 });
    expect(await changes(tenantId)).toMatchObject([
      { before: { plan: 'free' }, after: { plan: 'pro', profiles: { small: 'large', batch: 'large' } } },
    ]);
  });

  it('is refused while it lacks profiles of keys, and names them', async () => {
    const tenantId = await auth.tenant('free');
    const { hash } = await key(tenantId, 'batch');
    const revoked = await key(tenantId, 'small');
    await auth.request('auth.keys.revoke', { tenantId, id: revoked.id });
    await expect(auth.request('auth.tenants.update', { tenantId, plan: 'pro' })).rejects.toMatchObject({
      code: 'profiles_missing',
      message: expect.stringMatching(/batch \(keys: 1\)[^]*The plan has: large\./),
    });
    for (const profiles of [{ batch: 'small' }, { nobody: 'large', batch: 'large' }])
      expect(await auth.refusal('auth.tenants.update', { tenantId, plan: 'pro', profiles })).toBe('invalid_profile');
    expect(await auth.refusal('auth.tenants.update', { tenantId, plan: 'gold' })).toBe('invalid_plan');
    expect(await auth.edge.lookup(hash)).toMatchObject({ plan: 'free', profile: 'batch', version: 1 });
    expect(await changes(tenantId)).toEqual([]);
  });

  it('leaves no key behind that was issued or changed at the same time', async () => {
    const tenantId = await auth.tenant('free');
    const first = await key(tenantId, 'small');
    const keys = Array.from({ length: 10 }, () => minted('key'));
    const changed = auth.request('auth.tenants.update', { tenantId, plan: 'pro', profiles: { small: 'large' } });
    await Promise.all([
      ...keys.map((one) => auth.request('auth.keys.create', { tenantId, name: 'k', ...one })),
      auth.request('auth.keys.update', { tenantId, id: first.id, name: 'renamed' }),
      changed,
    ]);
    for (const { hash } of [first, ...keys])
      expect(await auth.edge.lookup(hash)).toMatchObject({ plan: 'pro', profile: 'large' });
  });
});

it('a tenant that does not exist is not found', async () => {
  for (const tenantId of [newId('ten'), 'x', '\0'])
    expect(await auth.refusal('auth.tenants.update', { tenantId, name: 'x' })).toBe('not_found');
});
