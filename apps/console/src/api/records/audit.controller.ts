import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { AUDIT_ACTIONS, mergedAudit, type AuditAction, type AuditQuery, type AuditRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant, AllowOperator } from '../../access/allow';
import { TenantPeople } from '../../access/tenant-people';
import { queryOf } from '../../http/body';
import type { AuditList } from '../answers';
import { inUtc, pageOf } from '../fields';

const ActionField = Type.Unsafe<AuditAction>({ type: 'string', enum: [...AUDIT_ACTIONS] });
const readQuery = queryOf(
  Type.Composite([
    pageOf('aud'),
    Type.Object({
      action: Type.Optional(ActionField),
      author: Type.Optional(Type.String({ minLength: 1, maxLength: 254 })),
      from: Type.Optional(Type.String({ format: 'date-time' })),
      to: Type.Optional(Type.String({ format: 'date-time' })),
    }),
  ]),
);

/** The changes, newest first: for a tenant its own, for operators all. */
@Controller('console/api')
export class AuditController {
  constructor(
    private readonly services: ServiceClient,
    private readonly people: TenantPeople,
  ) {}

  @Get('tenants/:tenantId/audit')
  @AllowInTenant('audit.read')
  async ofTenant(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<AuditList> {
    const wanted = inUtc(readQuery(query));
    // The rows of a guessed address would tell that it is an operator's.
    if (wanted.author !== undefined && !(await this.people.isOwn(tenantId, wanted.author)))
      return { data: [], nextCursor: null, actions: AUDIT_ACTIONS };
    const page = await this.page({ ...wanted, tenantId });
    const own = await this.people.ownAmong(tenantId, page.data);
    return { ...page, data: page.data.map((row) => forTenant(row, own)) };
  }

  @Get('operator/audit')
  @AllowOperator('audit.read')
  ofAll(@Query() query: unknown): Promise<AuditList> {
    return this.page(inUtc(readQuery(query)));
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
 * A tenant sees which of its own people made a change, and from where. For other authors it sees only their kind. It
 * sees no reasons, because operators write them for operators, even if the operator is a member of the tenant.
 */
function forTenant(row: AuditRow, own: ReadonlySet<string>): AuditRow {
  const { kind, id, requestId } = row.by;
  const shown = { ...row, before: withoutReason(row.before), after: withoutReason(row.after) };
  if (kind === 'token' || (kind === 'person' && id !== null && own.has(id))) return shown;
  return { ...shown, by: { kind, id: null, name: null, address: null, requestId } };
}

function withoutReason(fields: AuditRow['after']): AuditRow['after'] {
  if (fields === null) return null;
  const shown = { ...fields };
  delete shown['reason'];
  return shown;
}
