import { RequestError, type BillingSummary, type Invoice, type RequestOf } from '@tollgate/contracts';
import type { DataSource, EntityManager } from 'typeorm';
import { LedgerError } from '../ledger/core/accounts';
import { periodOf, periodStart } from '../ledger/core/period';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from '../ledger/ledger-entry';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 200;
/** Ten years of invoices; a tenant has one a month. */
const MAX_INVOICES = 120;

type SummaryRequest = RequestOf<'billing.summary'>;
type PageRow = EntryRow & { sequence: string; balance_after_cents: string };

/**
 * A tenant's balance, entries and invoices in one snapshot. The balance equals the sum of all entries: the database lets no entry in whose balance is not
 * the one before it plus its amount, and the page is checked against that here, so nothing is summed anew at each call. A tenant without books has zero.
 * @throws RequestError invalid_parameter (limit; `after` is none of the tenant's entries)
 */
export async function billingSummary(dataSource: DataSource, request: SummaryRequest): Promise<BillingSummary> {
  const limit = request.limit ?? DEFAULT_LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw new RequestError('invalid_parameter', `limit must be an integer from 1 to ${MAX_LIMIT}.`);
  }
  const runner = dataSource.createQueryRunner();
  try {
    await runner.startTransaction('REPEATABLE READ');
    await runner.query('SET TRANSACTION READ ONLY');
    const summary = await read(runner.manager, request, limit);
    await runner.commitTransaction();
    return summary;
  } catch (error) {
    if (runner.isTransactionActive) await runner.rollbackTransaction();
    throw error;
  } finally {
    await runner.release();
  }
}

async function read(tx: EntityManager, { tenantId, after }: SummaryRequest, limit: number): Promise<BillingSummary> {
  const [books] = await tx.query<{ balance_cents: string; last_sequence: string; unposted_nanos: string }[]>(
    `SELECT balance_cents, last_sequence, carried_nanos + gathered_nanos AS unposted_nanos FROM tenant_books WHERE tenant_id = $1`,
    [tenantId],
  );
  const before = await sequenceOf(tx, tenantId, after);
  const rows = await tx.query<PageRow[]>(
    `SELECT ${ENTRY_COLUMNS}, sequence, balance_after_cents FROM journal_entry
     WHERE tenant_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3`,
    [tenantId, before ?? String(2n ** 63n - 1n), limit + 1],
  );
  if (before === null) assertHead(tenantId, books, rows[0]);
  assertChain(rows);
  const page = rows.slice(0, limit);
  return {
    balanceCents: Number(books?.balance_cents ?? 0),
    carriedNanos: books?.unposted_nanos ?? '0',
    entries: page.map(ledgerEntry),
    nextCursor: rows.length > limit ? page.at(-1)!.id : null,
    invoices: await invoices(tx, tenantId),
  };
}

async function sequenceOf(tx: EntityManager, tenantId: string, after: string | undefined): Promise<string | null> {
  if (after === undefined) return null;
  const [row] = await tx.query<{ sequence: string }[]>(
    'SELECT sequence FROM journal_entry WHERE id = $1 AND tenant_id = $2',
    [after, tenantId],
  );
  if (!row) throw new RequestError('invalid_parameter', 'after is not the id of a ledger entry.');
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
  if (!agrees) throw new LedgerError(`the books of ${tenantId} do not say what its newest entry says`);
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

/** Newest first; the running month always. No month is closed yet, so all are `open` (not closed; a past one need not be running) and begin with their month. */
async function invoices(tx: EntityManager, tenantId: string): Promise<Invoice[]> {
  const rows = await tx.query<{ period: string; debited_cents: string }[]>(
    'SELECT period, debited_cents FROM tenant_month WHERE tenant_id = $1 ORDER BY period DESC LIMIT $2',
    [tenantId, MAX_INVOICES],
  );
  const running = periodOf(new Date());
  if (!rows.some((row) => row.period === running)) rows.push({ period: running, debited_cents: '0' });
  rows.sort((a, b) => (a.period < b.period ? 1 : -1));
  return rows.map(({ period, debited_cents }) => ({
    period,
    amountCents: Number(debited_cents),
    status: 'open',
    accountingNumber: null,
    createdAt: periodStart(period).toISOString(),
  }));
}
