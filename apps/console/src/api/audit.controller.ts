import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { AUDIT_ACTIONS, mergedAudit, type AuditAction, type AuditQuery, type AuditRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant, AllowOperator } from '../access/allow';
import { Members } from '../access/members';
import { queryOf } from '../http/body';
import type { AuditList } from './answers';
import { pageOf } from './fields';

const ActionField = Type.Unsafe<AuditAction>({ type: 'string', enum: [...AUDIT_ACTIONS] });
const readQuery = queryOf(
  Type.Composite([
    pageOf('aud'),
    Type.Object({
      action: Type.Optional(ActionField),
      author: Type.Optional(Type.String({ minLength: 1, maxLength: 254 })),
    }),
  ]),
);

/** The changes that were made, newest first: those of a tenant for the tenant, and all for operators. */
@Controller('console/api')
export class AuditController {
  constructor(
    private readonly services: ServiceClient,
    private readonly members: Members,
  ) {}

  @Get('tenants/:tenantId/audit')
  @AllowInTenant('audit.read')
  async ofTenant(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<AuditList> {
    const [page, members] = await Promise.all([
      this.page({ ...readQuery(query), tenantId }),
      this.members.list(tenantId),
    ]);
    const own = new Set(members.map(({ userId }) => userId));
    return { ...page, data: page.data.map((row) => forTenant(row, own)) };
  }

  @Get('operator/audit')
  @AllowOperator('audit.read')
  ofAll(@Query() query: unknown): Promise<AuditList> {
    return this.page(readQuery(query));
  }

  private async page(wanted: AuditQuery & { limit: number }): Promise<AuditList> {
    const pages = await Promise.all([
      this.services.request('auth.audit.list', wanted),
      this.services.request('billing.audit.list', wanted),
    ]);
    return { ...mergedAudit(pages, wanted.limit), actions: AUDIT_ACTIONS };
  }
}

/**
 * A tenant sees who of its own made a change, and from where. Of others it sees only what kind of author they are, and
 * not the reason, which an operator writes for operators.
 */
function forTenant(row: AuditRow, members: ReadonlySet<string>): AuditRow {
  const { kind, id } = row.by;
  if (kind === 'token' || (kind === 'person' && id !== null && members.has(id))) return row;
  return {
    ...row,
    by: { kind, id: null, name: null, address: null, requestId: row.by.requestId },
    before: withoutReason(row.before),
    after: withoutReason(row.after),
  };
}

function withoutReason(fields: AuditRow['after']): AuditRow['after'] {
  if (fields === null) return null;
  const shown = { ...fields };
  delete shown['reason'];
  return shown;
}
