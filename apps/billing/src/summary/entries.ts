import { RequestError, type EntriesQuery, type Page, type StatementEntry } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from '../ledger/ledger-entry';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 200;
const TYPES: readonly string[] = ['topup', 'usage', 'adjustment', 'refund'] satisfies StatementEntry['type'][];
const ISO_UTC = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/;

type Row = EntryRow & { balance_after_cents: string; period: string };

/**
 * Answers `billing.entries.list`: the tenant's journal, newest first by its sequence, each entry with the balance after
 * it. RequestError invalid_parameter.
 */
export async function listEntries(
  dataSource: DataSource,
  { tenantId, type, from, to, after, limit = DEFAULT_LIMIT }: EntriesQuery,
): Promise<Page<StatementEntry>> {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new RequestError('invalid_parameter', `limit must be a whole number from 1 to ${MAX_LIMIT}.`);
  if (type !== undefined && !TYPES.includes(type))
    throw new RequestError('invalid_parameter', `type must be one of ${TYPES.join(', ')}.`);
  const before = after === undefined ? null : await sequenceOf(dataSource, tenantId, after);
  const rows = await query<Row>(
    dataSource,
    `SELECT ${ENTRY_COLUMNS}, balance_after_cents, period FROM journal_entry
     WHERE tenant_id = $1 AND ($2::bigint IS NULL OR sequence < $2) AND ($3::text IS NULL OR type = $3)
       AND ($4::timestamptz IS NULL OR created_at >= $4) AND ($5::timestamptz IS NULL OR created_at < $5)
     ORDER BY sequence DESC LIMIT $6`,
    [tenantId, before, type ?? null, parseTime('from', from), parseTime('to', to), limit + 1],
  );
  const data = rows.slice(0, limit).map((row): StatementEntry => {
    return { ...ledgerEntry(row), balanceAfterCents: Number(row.balance_after_cents), period: row.period };
  });
  return { data, nextCursor: rows.length > limit ? data.at(-1)!.id : null };
}

async function sequenceOf(dataSource: DataSource, tenantId: string, after: unknown): Promise<string> {
  const isText = typeof after === 'string' && /^\w+$/.test(after);
  const sql = 'SELECT sequence FROM journal_entry WHERE id = $1 AND tenant_id = $2';
  const [row] = isText ? await query<{ sequence: string }>(dataSource, sql, [after, tenantId]) : [];
  if (!row) throw new RequestError('invalid_parameter', 'after must be the id of a ledger entry.');
  return row.sequence;
}

function parseTime(name: string, value: unknown): string | null {
  if (value === undefined) return null;
  const ms = typeof value === 'string' && ISO_UTC.test(value) ? Date.parse(value) : NaN;
  if (Number.isNaN(ms)) throw new RequestError('invalid_parameter', `${name} must be an ISO 8601 date or time in UTC.`);
  return new Date(ms).toISOString();
}
