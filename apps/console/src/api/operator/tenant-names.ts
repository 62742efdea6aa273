import { UnavailableError } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';

/** The names of the tenants on a page of a list, by id. Unknown ones are left out, and all while auth is down. */
export async function tenantNames(services: ServiceClient, ids: Iterable<string>): Promise<Map<string, string>> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return new Map();
  try {
    const { data } = await services.request('auth.tenants.names', { ids: distinct });
    return new Map(data.map(({ id, name }) => [id, name]));
  } catch (error) {
    if (error instanceof UnavailableError) return new Map();
    throw error;
  }
}
