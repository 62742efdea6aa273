import { INVOICE_SOURCE, MAX_NAMED_OF_PART, named, type Found } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { VOID_REF } from '../ledger/core/entry';

/** Checks of some tenants, like those in audit.ts. */
export const INVOICE_CHECKS = [
  {
    check: 'every invoice is the sum of the usage entries of its month',
    sql: `SELECT i.tenant_id AS "tenantId", ARRAY[i.accounting_number::text] AS ids,
        format('invoice %s, %s: %s cents', i.accounting_number, i.period, e.cents) AS expected,
        format('invoice %s, %s: %s cents', i.accounting_number, i.period, i.amount_cents) AS actual
      FROM invoice i, LATERAL (SELECT coalesce(-sum(amount_cents), 0) AS cents FROM journal_entry
        WHERE tenant_id = i.tenant_id AND period = i.period AND type = 'usage') e
      WHERE i.tenant_id = ANY($1) AND e.cents <> i.amount_cents`,
  },
  {
    check: 'every closed month that was debited has its invoice',
    sql: `SELECT m.tenant_id AS "tenantId", '{}'::text[] AS ids,
        format('%s: an invoice of %s cents', m.period, m.debited_cents) AS expected, 'none' AS actual
      FROM tenant_month m
      WHERE m.tenant_id = ANY($1) AND m.closed_at IS NOT NULL AND m.debited_cents > 0
        AND NOT EXISTS (SELECT FROM invoice WHERE tenant_id = m.tenant_id AND period = m.period)`,
  },
  {
    // Nothing is posted in a closed month, so such charges would never be debited.
    check: 'every closed month is covered to its end',
    sql: `SELECT tenant_id AS "tenantId", '{}'::text[] AS ids,
        format('%s: covered to charge %s', period, last_seq) AS expected,
        format('%s: covered to charge %s', period, covered_seq) AS actual
      FROM tenant_month WHERE tenant_id = ANY($1) AND closed_at IS NOT NULL AND covered_seq < last_seq`,
  },
  {
    check: 'the month of every invoice is closed',
    sql: `SELECT i.tenant_id AS "tenantId", ARRAY[i.accounting_number::text] AS ids,
        format('invoice %s, %s: closed', i.accounting_number, i.period) AS expected,
        format('invoice %s, %s: open', i.accounting_number, i.period) AS actual
      FROM invoice i JOIN tenant_month m USING (tenant_id, period)
      WHERE i.tenant_id = ANY($1) AND m.closed_at IS NULL`,
  },
  {
    // The entry counts: it is in the hash chain.
    check: 'every void invoice has the entry that reverses it',
    sql: `SELECT i.tenant_id AS "tenantId", ARRAY[i.accounting_number::text] AS ids,
        format('invoice %s: %s', i.accounting_number, coalesce('reversed by ' || e.id, 'not reversed')) AS expected,
        format('invoice %s: %s', i.accounting_number, coalesce('void by ' || v.entry_id, 'not void')) AS actual
      FROM invoice i
      LEFT JOIN invoice_void v USING (accounting_number)
      LEFT JOIN journal_entry e ON e.tenant_id = i.tenant_id AND e.source = '${INVOICE_SOURCE}'
        AND e.ref = '${VOID_REF}' || i.accounting_number
      WHERE i.tenant_id = ANY($1) AND v.entry_id IS DISTINCT FROM e.id
      ORDER BY i.accounting_number`,
  },
];

/**
 * Checks that the numbers of all invoices run from 1 to the last issued one without a gap. The tenant in a finding is
 * the tenant of the invoice after the gap, or none at the end.
 */
export async function auditInvoiceNumbers(dataSource: DataSource): Promise<Found> {
  const rows = await query<{ tenant_id: string; number: string; expected: string }>(
    dataSource,
    `SELECT tenant_id, number, expected FROM (
       SELECT tenant_id, accounting_number AS number,
         lag(accounting_number, 1, 0::bigint) OVER (ORDER BY accounting_number) + 1 AS expected
       FROM invoice
       UNION ALL
       SELECT '', c.last_number + 1, (SELECT coalesce(max(accounting_number), 0) + 1 FROM invoice)
       FROM invoice_counter c) n
     WHERE number <> expected ORDER BY number LIMIT ${MAX_NAMED_OF_PART + 1}`,
  );
  return named(
    rows.map((row) => ({
      check: 'invoices are numbered without a gap',
      tenantId: row.tenant_id,
      expected: `invoice ${row.expected}`,
      actual: `invoice ${row.number}`,
      ids: numbers(Number(row.expected), Number(row.number)),
    })),
  );
}

/** The missing numbers before `next`, as many as are named. */
function numbers(first: number, next: number): string[] {
  return Array.from({ length: Math.min(Math.max(next - first, 0), MAX_NAMED_OF_PART) }, (_, i) => String(first + i));
}
