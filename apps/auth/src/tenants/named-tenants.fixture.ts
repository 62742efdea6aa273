import { newId } from '@tollgate/contracts';
import { minted, type RunningAuth } from '../running-auth.fixture';

/** Tenants that have the name of a person in many places. */
export function namedTenants(auth: RunningAuth) {
  /** A tenant with a key and a token, each known to the edge by its hash. */
  async function customer(fields: { owner?: string; tags?: string[] } = {}) {
    const { id: tenantId } = await auth.request('auth.tenants.create', {
      name: 'Anna Muster',
      externalId: `crm-${newId('msg')}`,
    });
    const [key, token] = [minted('key'), minted('token')];
    const { id: keyId } = await auth.request('auth.keys.create', { tenantId, name: 'annas laptop', ...fields, ...key });
    await auth.request('auth.tokens.create', { tenantId, name: 'annas token', scopes: ['keys:read'], ...token });
    return { tenantId, keyId, key, token };
  }
  /** Its changes, newest first. */
  const log = async (tenantId: string) => (await auth.request('auth.audit.list', { tenantId, limit: 200 })).data;
  return { customer, log };
}
