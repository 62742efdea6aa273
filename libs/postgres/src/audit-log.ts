import {
  idBound,
  isId,
  isInstant,
  newId,
  pageRows,
  RequestError,
  toPage,
  type AuditAction,
  type AuditQuery,
  type AuditRow,
  type Author,
  type Page,
} from '@tollgate/contracts';
import { query, type Statements } from './statements';

/** A change for the audit log. `before` and `after` are the changed fields, and never have secrets or hashes. */
export interface Change {
  action: AuditAction;
  tenantId?: string;
  target?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
}

const BY_ITSELF: Author = { kind: 'service', id: null, name: null, address: null, requestId: null };

/**
 * Appends a change to the audit log of the schema, in the caller's transaction: a change is in the log if and only if
 * it was committed. Call it only when something changes, so that a repeat is not logged.
 */
export async function recordChange(
  tx: Statements,
  by: Author = BY_ITSELF,
  { action, tenantId, target, before, after }: Change,
): Promise<void> {
  const nowMs = Date.now();
  await query(
    tx,
    `INSERT INTO audit_log (id, at, author_kind, author_id, author_name, address, request_id, action, tenant_id, target,
       before, after)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      newId('aud', nowMs),
      new Date(nowMs),
      ...[by.kind, by.id, by.name, by.address, by.requestId],
      ...[action, tenantId ?? null, target ?? null],
      ...[before ?? null, after ?? null].map((fields) => fields && JSON.stringify(fields)),
    ],
  );
}

interface Row {
  id: string;
  at: Date;
  author_kind: Author['kind'];
  author_id: string | null;
  author_name: string | null;
  address: string | null;
  request_id: string | null;
  action: AuditAction;
  tenant_id: string | null;
  target: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/**
 * A page of the audit log of the schema, newest first: the rows before the id `after`, which need not be in this log,
 * so that a caller can merge the logs of several services. RequestError invalid_parameter.
 */
export async function auditPage(database: Statements, wanted: AuditQuery): Promise<Page<AuditRow>> {
  const { after, from, to } = wanted;
  const limit = pageRows(wanted.limit);
  if (after !== undefined && !isId('aud', after))
    throw new RequestError('invalid_parameter', 'after must be the id of a row of this list.');
  if (![from, to].every((time) => time === undefined || isInstant(time)))
    throw new RequestError('invalid_parameter', 'from and to must be times in UTC such as 2026-11-30T12:00:00.000Z.');
  const filters = [wanted.tenantId, wanted.action, wanted.target, wanted.author, wanted.requestId];
  // PostgreSQL stores no NUL in a text.
  if (!filters.every((text) => text === undefined || (typeof text === 'string' && !text.includes('\0'))))
    throw new RequestError('invalid_parameter', 'A filter must be a text without the character U+0000.');
  // An id is never older than its time, so the bound only spares the search through older rows.
  const oldest = from === undefined ? null : idBound('aud', Date.parse(from));
  const rows = await query<Row>(
    database,
    `SELECT * FROM audit_log
     WHERE ($1::text IS NULL OR id < $1) AND ($2::text IS NULL OR id >= $2)
       AND ($3::timestamptz IS NULL OR at >= $3) AND ($4::timestamptz IS NULL OR at < $4)
       AND ($5::text IS NULL OR tenant_id = $5) AND ($6::text IS NULL OR action = $6)
       AND ($7::text IS NULL OR target = $7) AND ($8::text IS NULL OR author_id = $8 OR author_name = $8)
       AND ($9::text IS NULL OR request_id = $9)
     ORDER BY id DESC LIMIT $10`,
    [...[after ?? null, oldest, from ?? null, to ?? null], ...filters.map((text) => text ?? null), limit + 1],
  );
  return toPage(rows.map(toRow), limit, ({ id }) => id);
}

function toRow(row: Row): AuditRow {
  const { id, at, action, target, before, after, address } = row;
  const by = { kind: row.author_kind, id: row.author_id, name: row.author_name, address, requestId: row.request_id };
  return { id, at: at.toISOString(), by, action, tenantId: row.tenant_id, target, before, after };
}
