import { pageRows, RequestError, toPage, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from '../ledger/ledger-entry';

interface ChargeRangeRow extends EntryRow {
  tenant_id: string;
  balance_after_cents: string;
  period: string;
  from_seq: string | null;
  to_seq: string | null;
  carried_in_nanos: string | null;
  carried_out_nanos: string | null;
}

interface ChargeRow {
  id: string;
  tenant_id: string;
  key_id: string;
  cost_nanos: string;
  ended_at: Date;
  period: string;
  seq: string;
}

/**
 * Answers `billing.entry.requests`: a page of the requests that an entry debits, in the order in which they were
 * gathered. Their costs, with what was carried in and out, are exactly the entry's amount. An entry that is not usage
 * covers none. With a tenant, requests of other tenants do not exist.
 * @throws RequestError not_found (entry), invalid_parameter (limit; `after` is not one of its requests)
 */
export async function requestsOfEntry(
  dataSource: DataSource,
  { entryId, tenantId: ofTenant, limit: asked, after }: RequestOf<'billing.entry.requests'>,
): Promise<ReplyOf<'billing.entry.requests'>> {
  const limit = pageRows(asked);
  const columns = ENTRY_COLUMNS.split(', ').map((column) => (column === 'amount_cents' ? 'e.amount_cents' : column));
  const [range] = isText(entryId)
    ? await query<ChargeRangeRow>(
        dataSource,
        `SELECT ${columns.join(', ')}, e.tenant_id, e.period, e.balance_after_cents, v.from_seq, v.to_seq,
           v.carried_in_nanos, v.carried_out_nanos
         FROM journal_entry e LEFT JOIN coverage v ON v.entry_id = e.id WHERE e.id = $1`,
        [entryId],
      )
    : [];
  if (!range || (ofTenant ?? range.tenant_id) !== range.tenant_id)
    throw new RequestError('not_found', 'No such ledger entry.');
  const { tenant_id: tenantId, period } = range;
  const entry = { ...ledgerEntry(range), tenantId, period, balanceAfterCents: Number(range.balance_after_cents) };
  const carried = { carriedInNanos: range.carried_in_nanos ?? '0', carriedOutNanos: range.carried_out_nanos ?? '0' };
  if (range.from_seq === null) return { entry, ...carried, requests: [], nextCursor: null };
  const first = after === undefined ? range.from_seq : await seqAfter(dataSource, after, range);
  const rows = await query<ChargeRow>(
    dataSource,
    `SELECT * FROM charge WHERE tenant_id = $1 AND period = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq LIMIT $5`,
    [range.tenant_id, range.period, first, range.to_seq, limit + 1],
  );
  const { data: requests, nextCursor } = toPage(rows.map(toRequest), limit, ({ id }) => id);
  return { entry, ...carried, requests, nextCursor };
}

/**
 * Answers `billing.request.entry`: where a request is in the books. It returns the charge, the entry that debits it
 * (null: not yet), whether its month is closed, and the invoice of the month (null: not closed yet, or nothing was
 * debited in it).
 * @throws RequestError not_found: billing has no charge of the request
 */
export async function entryOfRequest(
  dataSource: DataSource,
  { requestId }: RequestOf<'billing.request.entry'>,
): Promise<ReplyOf<'billing.request.entry'>> {
  const [charge] = isText(requestId)
    ? await query<ChargeRow>(dataSource, 'SELECT * FROM charge WHERE id = $1', [requestId])
    : [];
  if (!charge)
    throw new RequestError(
      'not_found',
      'Billing has no charge of this request. Check the id. A new charge arrives after a moment.',
    );
  const ofMonth = [charge.tenant_id, charge.period];
  // Ranges do not overlap. The last range that starts before the charge includes it, or none does yet.
  const [range] = await query<{ entry_id: string | null; number: string; to_seq: string }>(
    dataSource,
    `SELECT entry_id, number, to_seq
     FROM coverage
     WHERE tenant_id = $1 AND period = $2 AND from_seq <= $3
     ORDER BY from_seq DESC
     LIMIT 1`,
    [...ofMonth, charge.seq],
  );
  const covered = range !== undefined && BigInt(range.to_seq) >= BigInt(charge.seq);
  const [entry] =
    covered && range.entry_id !== null
      ? await query<EntryRow>(dataSource, `SELECT ${ENTRY_COLUMNS} FROM journal_entry WHERE id = $1`, [range.entry_id])
      : [];
  const [month] = await query<{ is_closed: boolean; accounting_number: string | null; is_void: boolean }>(
    dataSource,
    `SELECT m.closed_at IS NOT NULL AS is_closed, i.accounting_number, v.accounting_number IS NOT NULL AS is_void
     FROM tenant_month m
     LEFT JOIN invoice i USING (tenant_id, period)
     LEFT JOIN invoice_void v USING (accounting_number)
     WHERE m.tenant_id = $1 AND m.period = $2`,
    ofMonth,
  );
  const number = month?.accounting_number ?? null;
  return {
    charge: { ...toRequest(charge), tenantId: charge.tenant_id, period: charge.period },
    carriedOn: covered && range.entry_id === null,
    entry: entry ? ledgerEntry(entry) : null,
    invoice:
      number === null
        ? null
        : { period: charge.period, accountingNumber: Number(number), status: month!.is_void ? 'void' : 'paid' },
    monthClosed: month?.is_closed ?? false,
  };
}

async function seqAfter(dataSource: DataSource, after: string, range: ChargeRangeRow): Promise<string> {
  const [row] = isText(after)
    ? await query<{ seq: string }>(
        dataSource,
        'SELECT seq + 1 AS seq FROM charge WHERE id = $1 AND tenant_id = $2 AND period = $3 AND seq BETWEEN $4 AND $5',
        [after, range.tenant_id, range.period, range.from_seq, range.to_seq],
      )
    : [];
  if (!row) throw new RequestError('invalid_parameter', 'after must be a request of this entry.');
  return row.seq;
}

function toRequest({ id, key_id, cost_nanos, ended_at }: ChargeRow) {
  return { id, keyId: key_id, costNanos: cost_nanos, endedAt: ended_at.toISOString() };
}

/** PostgreSQL stores no NUL in a text. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}
