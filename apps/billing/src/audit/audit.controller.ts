import { Controller } from '@nestjs/common';
import type { AuditQuery, AuditRow, Page } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { auditPage } from '@tollgate/postgres';
import { BillingDataSource } from '../database';

/** The audit log of this service. Each change writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(private readonly database: BillingDataSource) {}

  @MessagePattern('billing.audit.list')
  list(query: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.database, query);
  }
}
