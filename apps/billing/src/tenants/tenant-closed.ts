import type { Requests } from '@tollgate/messaging';

/** The lock is held meanwhile, and a closing of the tenant waits for it for at most 2 s. */
const STATUS_DEADLINE_MS = 1_000;

/**
 * Whether auth has closed the tenant. Call it under the lock of the tenant's books: an answer from before the lock may
 * be old when the lock is taken. Auth commits the closing first, then tells billing (TenantStatus), which takes the
 * same lock, and only then answers. So an entry that found the tenant open under the lock is booked before the closing
 * is answered, and every later one finds it closed. A closed tenant stays closed.
 *
 * Ask auth for the tenant before the lock as well: it refuses an unknown tenant, and while auth is unavailable no lock
 * is taken. RequestError not_found; UnavailableError when auth does not answer.
 */
export async function isClosed(services: Requests, tenantId: string): Promise<boolean> {
  const { status } = await services.request('auth.tenants.get', { tenantId }, { deadlineMs: STATUS_DEADLINE_MS });
  return status === 'closed';
}
