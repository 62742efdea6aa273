import { named, type Difference, type Found } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { readClocks, type Clocks } from '../ledger/clocks';
import { periodOf } from '../ledger/core/period';

const CURRENCY_CHECK = 'the books are in the currency of the configuration';
const COUNTER_CHECK = 'the next invoice has a number';
const CLOSED_CHECK = 'only months that are over are closed';

/**
 * Checks the rows that all tenants share: the currency of the books, which the configuration cannot change once they
 * have an entry or a charge, and the counter of the invoices. Whether its number is the next one, auditInvoiceNumbers
 * says.
 */
export async function auditCommonRows(
  dataSource: DataSource,
  { currency, ...clocks }: Clocks & { currency: () => string },
): Promise<Found> {
  const [row] = await query<{ used: boolean; currency: string | null; last: string; closed_through: string | null }>(
    dataSource,
    `SELECT EXISTS (SELECT FROM journal_entry) OR EXISTS (SELECT FROM charge) AS used,
       (SELECT currency FROM books_currency) AS currency,
       (SELECT coalesce(max(accounting_number), 0) FROM invoice) AS last,
       (SELECT closed_through FROM invoice_counter) AS closed_through`,
  );
  const { used, last, closed_through: closedThrough } = row!;
  // After the statement, so that a month that ended meanwhile is no difference.
  const { own, database } = await readClocks(clocks, dataSource);
  const running = periodOf(own > database ? own : database);
  const found: Difference[] = [];
  const differs = (check: string, expected: string, actual: string) =>
    found.push({ check, tenantId: '', expected, actual, ids: [] });
  if (used && row!.currency !== currency()) differs(CURRENCY_CHECK, currency(), row!.currency ?? 'none');
  if (closedThrough === null) differs(COUNTER_CHECK, `invoice ${BigInt(last) + 1n}`, 'none');
  else if (closedThrough >= running)
    differs(CLOSED_CHECK, `closed before ${running}`, `closed through ${closedThrough}`);
  return named(found);
}
