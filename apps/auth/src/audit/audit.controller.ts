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
import { auditPage, recordChange } from '@tollgate/postgres';
import { AuthDataSource } from '../database';
import { erasePerson } from './erase-person';

/** The audit log of this service, and of the console. Each change of auth writes its row in its own transaction. */
@Controller()
export class AuditController {
  constructor(private readonly dataSource: AuthDataSource) {}

  @MessagePattern('auth.audit.list')
  list(wanted: AuditQuery): Promise<Page<AuditRow>> {
    return auditPage(this.dataSource, wanted);
  }

  /** The console can name its own changes only. */
  @MessagePattern('auth.audit.record')
  async record({ by, ...change }: RequestOf<'auth.audit.record'>): Promise<{ recorded: true }> {
    if (!CONSOLE_ACTIONS.includes(change.action))
      throw new RequestError('invalid_parameter', 'action must be a change that the console makes.');
    await recordChange(this.dataSource, by, change);
    return { recorded: true };
  }

  @MessagePattern('auth.people.erase')
  async erasePerson(person: RequestOf<'auth.people.erase'>): Promise<{ erased: true }> {
    await erasePerson(this.dataSource, person);
    return { erased: true };
  }
}
