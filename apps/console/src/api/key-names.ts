import { UnavailableError } from '@tollgate/contracts';
import type { ServiceClient } from '@tollgate/messaging/nest';

/**
 * The names of keys, by id. Unknown keys are left out, and all of them while auth is unavailable. Only for ids in the
 * tenant's own books: the subject answers for all tenants.
 */
export async function keyNames(services: ServiceClient, ids: Iterable<string>): Promise<Record<string, string>> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return {};
  try {
    const { data } = await services.request('auth.keys.names', { ids: distinct });
    return Object.fromEntries(data.map(({ id, name }) => [id, name]));
  } catch (error) {
    if (error instanceof UnavailableError) return {};
    throw error;
  }
}
