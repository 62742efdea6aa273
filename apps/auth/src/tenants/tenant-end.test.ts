import { newId, RequestError, UnavailableError } from '@tollgate/contracts';
import { minted, useAuth } from '../running-auth.fixture';
import { namedTenants } from './named-tenants.fixture';

const { auth, database } = useAuth();
const { customer, log } = namedTenants(auth);

describe('a closed tenant', () => {
  it('has no key and no token in force when it is answered, is suspended for admission, and stays so', async () => {
    const { tenantId, key, token } = await customer();
    const closed = await auth.request('auth.tenants.close', { tenantId });
    expect(closed).toMatchObject({ id: tenantId, status: 'closed', closedAt: expect.any(String), erasedAt: null });
    for (const { hash } of [key, token])
      expect(await auth.edge.lookup(hash)).toMatchObject({ revokedAtMs: expect.any(Number) });
    const acted = auth.billing.actedOn.filter((update) => update.tenantId === tenantId);
    expect(acted).toEqual([{ tenantId, version: 1, status: 'suspended' }]);
    expect((await log(tenantId))[0]).toMatchObject({
      action: 'tenant.close',
      before: { status: 'active' },
      after: { status: 'closed', revokedKeys: 1, revokedTokens: 1 },
    });
    expect(await auth.request('auth.tenants.close', { tenantId })).toEqual(closed);
    expect((await log(tenantId)).filter(({ action }) => action === 'tenant.close')).toHaveLength(1);
  });

  it('gets no key, no token, no other status, name or plan any more', async () => {
    const { tenantId, keyId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    const refusals = [
      auth.refusal('auth.keys.create', { tenantId, name: 'k', ...minted('key') }),
      auth.refusal('auth.tokens.create', { tenantId, name: 't', scopes: ['keys:read'], ...minted('token') }),
      auth.refusal('auth.tenants.setStatus', { tenantId, status: 'active' }),
      auth.refusal('auth.tenants.update', { tenantId, name: 'Other' }),
      auth.refusal('auth.tenants.update', { tenantId, plan: 'pro' }),
    ];
    expect(await Promise.all(refusals)).toEqual(refusals.map(() => 'tenant_closed'));
    expect(await auth.request('auth.keys.get', { tenantId, id: keyId })).toMatchObject({ status: 'revoked' });
  });

  it('has no key in force that was issued while it was closed', async () => {
    const { tenantId } = await customer();
    const keys = Array.from({ length: 20 }, () => minted('key'));
    const closing = auth.request('auth.tenants.close', { tenantId });
    const issued = await Promise.allSettled(
      keys.map((key) => auth.request('auth.keys.create', { tenantId, name: 'k', ...key })),
    );
    await closing;
    await auth.request('auth.tenants.close', { tenantId });
    for (const { hash } of keys) expect((await auth.edge.lookup(hash))?.revokedAtMs).not.toBeNull();
    for (const result of issued)
      if (result.status === 'rejected') expect((result.reason as RequestError).code).toBe('tenant_closed');
  });

  it('is committed but not answered until billing has acted on it', async () => {
    const { tenantId } = await customer();
    auth.billing.isAway = true;
    try {
      await expect(auth.request('auth.tenants.close', { tenantId })).rejects.toThrow(UnavailableError);
    } finally {
      auth.billing.isAway = false;
    }
    expect(await auth.request('auth.tenants.get', { tenantId })).toMatchObject({ status: 'closed' });
    expect(await auth.request('auth.tenants.close', { tenantId })).toMatchObject({ status: 'closed' });
  });

  it('cannot be opened again, not even by the owner of the schema', async () => {
    const { tenantId } = await customer();
    await auth.request('auth.tenants.close', { tenantId });
    for (const change of [`status = 'active', closed_at = NULL`, `closed_at = now() + interval '1 hour'`])
      await expect(database.query(`UPDATE auth.tenant SET ${change} WHERE id = $1`, [tenantId])).rejects.toThrow(
        /stays closed/,
      );
  });

  it('that does not exist is not found', async () => {
    for (const tenantId of [newId('ten'), 'x', '\0']) {
      expect(await auth.refusal('auth.tenants.close', { tenantId })).toBe('not_found');
      expect(await auth.refusal('auth.tenants.erase', { tenantId })).toBe('not_found');
    }
  });
});
