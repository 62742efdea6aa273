import { Controller } from '@nestjs/common';
import {
  type AuditQuery,
  type AuditRow,
  CONSOLE_ACTIONS,
  type Page,
  RequestError,
  type RequestOf,
} from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { auditPage, query, recordChange, transaction } from '@tollgate/postgres';
import { AuthDatabase } from '../database';

/** The audit log of this service, and of the console. Each change of auth writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(private readonly database: AuthDatabase) {}

  @MessagePattern('auth.audit.list')
  list(wanted: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.database.dataSource, wanted);
  }

  /** The console can name its own changes only. */
  @MessagePattern('auth.audit.record')
  async record({ by, ...change }: RequestOf<'auth.audit.record'>): Promise<{ recorded: true }> {
    if (!CONSOLE_ACTIONS.includes(change.action))
      throw new RequestError('invalid_parameter', 'action must be a change that the console makes.');
    await recordChange(this.database.dataSource, by, change);
    return { recorded: true };
  }

  /** The row of a person who erases their own account has no name either. Only the first of repeats adds the row. */
  @MessagePattern('auth.people.erase')
  async erasePerson({ by, userId, email }: RequestOf<'auth.people.erase'>): Promise<{ erased: true }> {
    await transaction(this.database.dataSource, async (tx) => {
      // The console may ask again while the first request is still handled.
      await query(tx, `SELECT pg_advisory_xact_lock(hashtextextended('tollgate-auth-erasure ' || $1, 0))`, [userId]);
      const logged = `SELECT 1 FROM audit_log WHERE target = $1 AND action = 'account.erase'`;
      if ((await query(tx, logged, [userId])).length === 0)
        await recordChange(tx, by, { action: 'account.erase', target: userId });
      await query(tx, 'SELECT erase_person($1, $2)', [userId, email.toLowerCase()]);
    });
    return { erased: true };
  }
}
