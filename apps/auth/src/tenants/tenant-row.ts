import type { TenantRow } from '@tollgate/contracts';
import type { Tenant } from './tenant.entity';

export function tenantRow({ id, name, externalId, plan, status, createdAt, closedAt, erasedAt }: Tenant): TenantRow {
  return {
    ...{ id, name, externalId, plan, status },
    createdAt: createdAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    erasedAt: erasedAt?.toISOString() ?? null,
  };
}
