import { isId, RequestError } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';
import { Tenant } from './tenant.entity';

/**
 * Locks a tenant in the caller's transaction. `to_add` (credentials) lets others add at the same time, and keeps plan
 * and status as they are until the end of the transaction. `to_change` waits for all of them. Lock the tenant before
 * its credentials. RequestError not_found; tenant_closed unless `closed` is allowed.
 */
export async function lockTenant(
  tx: EntityManager,
  tenantId: string,
  purpose: 'to_add' | 'to_change',
  { closed = false }: { closed?: boolean } = {},
): Promise<Tenant> {
  const mode = purpose === 'to_add' ? 'pessimistic_read' : 'pessimistic_write';
  const tenant = isId('ten', tenantId) && (await tx.findOne(Tenant, { where: { id: tenantId }, lock: { mode } }));
  if (!tenant) throw new RequestError('not_found', 'No such tenant.');
  if (tenant.status === 'closed' && !closed) throw new RequestError('tenant_closed');
  return tenant;
}
