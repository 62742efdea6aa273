import { Injectable } from '@nestjs/common';
import { RequestError, type RequestOf, type TenantRow, type TenantUpdate } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { AuthDataSource } from '../database';
import { Projector } from '../project/projector';
import { lockTenant } from './lock-tenant';
import { TenantErasures } from './tenant-erasures';
import { TenantNews } from './tenant-news';
import { tenantRow } from './tenant-row';
import { Tenant } from './tenant.entity';

/**
 * The end of a tenant (ADR 0024). Closing ends what it can do, erasing what is known of its people. Its money leaves by
 * a refund or an adjustment, and its books stay.
 */
@Injectable()
export class TenantEnd {
  constructor(
    private readonly dataSource: AuthDataSource,
    private readonly news: TenantNews,
    private readonly projector: Projector,
    private readonly erasures: TenantErasures,
  ) {}

  /**
   * Suspends the tenant and revokes its credentials, in one transaction and for good. In force when this returns. A
   * repeat changes nothing, and brings it into force again. RequestError not_found. UnavailableError when it may not be
   * in force yet: repeat the request.
   */
  async close({ tenantId, by }: RequestOf<'auth.tenants.close'>): Promise<TenantRow> {
    const { row, update } = await transaction(this.dataSource, async (tx) => {
      const tenant = await lockTenant(tx, tenantId, 'to_change', { closed: true });
      if (tenant.status !== 'closed') {
        const revoked = await query<{ kind: 'key' | 'token' }>(
          tx,
          `UPDATE credential SET revoked_at = now(), version = version + 1
            WHERE tenant_id = $1 AND revoked_at IS NULL RETURNING kind`,
          [tenantId],
        );
        const before = { status: tenant.status };
        const change = { status: 'closed' as const, closedAt: new Date(), statusVersion: tenant.statusVersion + 1 };
        Object.assign(tenant, change);
        await tx.update(Tenant, { id: tenantId }, change);
        const count = (kind: string) => revoked.filter((one) => one.kind === kind).length;
        const after = { status: 'closed', revokedKeys: count('key'), revokedTokens: count('token') };
        await recordChange(tx, by, { action: 'tenant.close', tenantId, before, after });
      }
      // For admission, a closed tenant is a suspended one.
      const update: TenantUpdate = { tenantId, version: tenant.statusVersion, status: 'suspended' };
      await enqueue(tx, 'tenant-news', [update]);
      return { row: tenantRow(tenant), update };
    });
    await this.projector.projectTenant(tenantId);
    await this.news.tell(update);
    return row;
  }

  /**
   * RequestError not_found, tenant_not_closed. A repeat erases what was written meanwhile. UnavailableError while
   * rows of auth or of billing may still have names. These names are erased later, and then a repeat succeeds.
   */
  async erase({ tenantId, by }: RequestOf<'auth.tenants.erase'>): Promise<TenantRow> {
    const row = await transaction(this.dataSource, async (tx) => {
      const { status } = await lockTenant(tx, tenantId, 'to_change', { closed: true });
      if (status !== 'closed') throw new RequestError('tenant_not_closed');
      const [done] = await query<{ erased: boolean }>(tx, 'SELECT begin_erasure($1) AS erased', [tenantId]);
      if (done!.erased) await recordChange(tx, by, { action: 'tenant.erase', tenantId });
      return tenantRow(await tx.findOneByOrFail(Tenant, { id: tenantId }));
    });
    await this.erasures.eraseRows(tenantId);
    return row;
  }
}
