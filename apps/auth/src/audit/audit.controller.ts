import { Controller } from '@nestjs/common';
import type { AuditQuery, AuditRow, Page } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { auditPage } from '@tollgate/postgres';
import { AuthDatabase } from '../database';

/** The audit log of this service. Each change writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(private readonly database: AuthDatabase) {}

  @MessagePattern('auth.audit.list')
  list(query: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.database.dataSource, query);
  }
}
