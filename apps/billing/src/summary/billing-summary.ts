import { pageRows, RequestError, toPage, type BillingSummary, type Invoice, type RequestOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import { LedgerError } from '../ledger/core/accounts';
import { periodOf, periodStart } from '../ledger/core/period';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from '../ledger/ledger-entry';

/** Ten years of invoices, one per month. */
const MAX_INVOICES = 120;

type SummaryRequest = RequestOf<'billing.summary'>;
type PageRow = EntryRow & { sequence: string; balance_after_cents: string };

/**
 * A tenant's balance, entries and invoices in one snapshot. The balance equals the sum of all entries: the database
 * accepts an entry only if its balance is the one before it plus its amount. Here the page is checked against that, so
 * a call does not sum everything. A tenant without books has zero.
 * @throws RequestError invalid_parameter (limit; `after` is not one of the tenant's entries)
 */
export async function billingSummary(
  dataSource: DataSource,
  request: SummaryRequest,
  now = new Date(),
): Promise<BillingSummary> {
  const limit = pageRows(request.limit);
  return dataSource.transaction('REPEATABLE READ', async (tx) => {
    await query(tx, 'SET TRANSACTION READ ONLY');
    return read(tx, request, limit, now);
  });
}

async function read(
  tx: EntityManager,
  { tenantId, after }: SummaryRequest,
  limit: number,
  now: Date,
): Promise<BillingSummary> {
  const [books] = await query<{ balance_cents: string; last_sequence: string; unposted_nanos: string }>(
    tx,
    `SELECT balance_cents, last_sequence, carried_nanos + gathered_nanos AS unposted_nanos
     FROM tenant_books
     WHERE tenant_id = $1`,
    [tenantId],
  );
  const before = await sequenceOf(tx, tenantId, after);
  const rows = await query<PageRow>(
    tx,
    `SELECT ${ENTRY_COLUMNS}, sequence, balance_after_cents FROM journal_entry
     WHERE tenant_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3`,
    [tenantId, before ?? String(2n ** 63n - 1n), limit + 1],
  );
  if (before === null) assertHead(tenantId, books, rows[0]);
  assertChain(rows);
  const { data, nextCursor } = toPage(rows, limit, ({ id }) => id);
  return {
    balanceCents: Number(books?.balance_cents ?? 0),
    carriedNanos: books?.unposted_nanos ?? '0',
    entries: data.map(ledgerEntry),
    nextCursor,
    invoices: await invoices(tx, tenantId, now),
  };
}

async function sequenceOf(tx: EntityManager, tenantId: string, after: string | undefined): Promise<string | null> {
  if (after === undefined) return null;
  const [row] = await query<{ sequence: string }>(
    tx,
    'SELECT sequence FROM journal_entry WHERE id = $1 AND tenant_id = $2',
    [after, tenantId],
  );
  if (!row) throw new RequestError('invalid_parameter', 'after must be the id of a ledger entry.');
  return row.sequence;
}

function assertHead(
  tenantId: string,
  books: { balance_cents: string; last_sequence: string } | undefined,
  newest: PageRow | undefined,
): void {
  const agrees =
    (books?.balance_cents ?? '0') === (newest?.balance_after_cents ?? '0') &&
    (books?.last_sequence ?? '0') === (newest?.sequence ?? '0');
  if (!agrees) throw new LedgerError(`the books of ${tenantId} differ from its newest entry`);
}

function assertChain(rows: readonly PageRow[]): void {
  rows.forEach((row, index) => {
    const older = rows[index + 1];
    const expected = older ? BigInt(older.balance_after_cents) + BigInt(row.amount_cents) : undefined;
    if (expected !== undefined && expected !== BigInt(row.balance_after_cents)) {
      throw new LedgerError(`entry ${row.id}: balance ${row.balance_after_cents}, expected ${expected}`);
    }
  });
}

interface InvoiceRow {
  period: string;
  amount_cents: string;
  accounting_number: string | null;
  created_at: Date | null;
  is_void: boolean;
}

/**
 * Newest first, always with the running month. Open invoices start with their month; an open month in the past waits
 * for its closing. A closed month without debits has no invoice.
 */
async function invoices(tx: EntityManager, tenantId: string, now: Date): Promise<Invoice[]> {
  const rows = await query<InvoiceRow>(
    tx,
    `SELECT m.period, coalesce(i.amount_cents, m.debited_cents) AS amount_cents, i.accounting_number, i.created_at,
       v.accounting_number IS NOT NULL AS is_void
     FROM tenant_month m
     LEFT JOIN invoice i USING (tenant_id, period)
     LEFT JOIN invoice_void v USING (accounting_number)
     WHERE m.tenant_id = $1 AND (m.closed_at IS NULL OR i.accounting_number IS NOT NULL)
     ORDER BY m.period DESC
     LIMIT $2`,
    [tenantId, MAX_INVOICES],
  );
  const running = periodOf(now);
  if (!rows.some((row) => row.period === running))
    rows.push({ period: running, amount_cents: '0', accounting_number: null, created_at: null, is_void: false });
  rows.sort((a, b) => (a.period < b.period ? 1 : -1));
  return rows.map(({ period, amount_cents, accounting_number, created_at, is_void }) => ({
    period,
    amountCents: Number(amount_cents),
    status: accounting_number === null ? 'open' : is_void ? 'void' : 'paid',
    accountingNumber: accounting_number === null ? null : Number(accounting_number),
    createdAt: (created_at ?? periodStart(period)).toISOString(),
  }));
}
