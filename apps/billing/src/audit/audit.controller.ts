import { Controller } from '@nestjs/common';
import { RequestError, type AuditQuery, type AuditRow, type Page, type RequestOf } from '@tollgate/contracts';
import { MessagePattern, ServiceClient } from '@tollgate/messaging/nest';
import { auditPage } from '@tollgate/postgres';
import { BillingDataSource } from '../database';
import { eraseChanges } from './erase-changes';
import { erasePerson } from './erase-person';

/** The audit log of this service. Each change writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly services: ServiceClient,
  ) {}

  @MessagePattern('billing.audit.list')
  list(wanted: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.dataSource, wanted);
  }

  /** Auth owns the status. It has committed the erasure before it asks, and has the row of it. */
  @MessagePattern('billing.tenants.erase')
  async eraseTenant({ tenantId }: RequestOf<'billing.tenants.erase'>): Promise<{ erased: true }> {
    const { status } = await this.services.request('auth.tenants.get', { tenantId });
    if (status !== 'closed') throw new RequestError('tenant_not_closed');
    await eraseChanges(this.dataSource, tenantId);
    return { erased: true };
  }

  @MessagePattern('billing.people.erase')
  async erasePerson({ userId }: RequestOf<'billing.people.erase'>): Promise<{ erased: true }> {
    await erasePerson(this.dataSource, userId);
    return { erased: true };
  }
}
