import type { AuditRow } from '@tollgate/contracts';
import { csvLine } from '../csv';

export const AUDIT_CSV_HEADER =
  'id,at,author_kind,author_id,author_name,address,request_id,action,tenant_id,target,before,after\r\n';

/** A row as a line of CSV (RFC 4180). `before` and `after` are JSON. An absent value is empty. */
export function auditCsvLine({ id, at, by, action, tenantId, target, before, after }: AuditRow): string {
  const author = [by.kind, by.id, by.name, by.address, by.requestId];
  const fields = [before, after].map((value) => value && JSON.stringify(value));
  return csvLine([id, at, ...author, action, tenantId, target, ...fields]);
}
