import { Controller } from '@nestjs/common';
import type { AuditQuery, AuditRow, Page, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { auditPage, query } from '@tollgate/postgres';
import { BillingDataSource } from '../database';

/** The audit log of this service. Each change writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(private readonly database: BillingDataSource) {}

  @MessagePattern('billing.audit.list')
  list(wanted: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.database, wanted);
  }

  @MessagePattern('billing.people.erase')
  async erasePerson({ userId }: RequestOf<'billing.people.erase'>): Promise<{ erased: true }> {
    await query(this.database, 'SELECT erase_person($1)', [userId]);
    return { erased: true };
  }
}
