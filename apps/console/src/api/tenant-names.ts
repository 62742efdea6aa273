import { RequestError, UnavailableError } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';

/**
 * What tenants are called, by id: those of a page of a list, so each is asked for alone. Unknown ones are left out, and
 * all of them while auth is away.
 */
export async function tenantNames(services: ServiceClient, ids: Iterable<string>): Promise<Map<string, string>> {
  const names = await Promise.all([...new Set(ids)].map((tenantId) => nameOf(services, tenantId)));
  return new Map(names.filter((entry) => entry !== null));
}

async function nameOf(services: ServiceClient, tenantId: string): Promise<[id: string, name: string] | null> {
  try {
    const { name } = await services.request('auth.tenants.get', { tenantId });
    return [tenantId, name];
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    if (error instanceof RequestError && error.code === 'not_found') return null;
    throw error;
  }
}
