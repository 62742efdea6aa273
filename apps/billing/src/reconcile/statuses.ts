import { RequestError } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { askAgain } from './ask';

const ASKED_AT_ONCE = 20;

/** Whether auth suspends these tenants. A closed tenant is suspended. One that auth does not know is left out. */
export async function suspendedByAuth(
  services: Requests,
  tenantIds: readonly string[],
  stopped: AbortSignal,
): Promise<Map<string, boolean>> {
  const suspended = new Map<string, boolean>();
  const ask = async (tenantId: string) => {
    try {
      const { status } = await askAgain(services, 'auth.tenants.get', { tenantId }, stopped);
      suspended.set(tenantId, status !== 'active');
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'not_found')) throw error;
    }
  };
  for (let from = 0; from < tenantIds.length; from += ASKED_AT_ONCE)
    await Promise.all(tenantIds.slice(from, from + ASKED_AT_ONCE).map(ask));
  return suspended;
}
