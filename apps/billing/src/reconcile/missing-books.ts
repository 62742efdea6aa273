import { MAX_NAMED_OF_PART, named, type Found } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';

/** The tenants in a table: an index probe for each. */
const tenantsIn = (table: 'journal_entry' | 'charge') => `
  SELECT min(tenant_id) AS tenant_id FROM ${table}
  UNION ALL
  SELECT (SELECT min(t.tenant_id) FROM ${table} t WHERE t.tenant_id > last.tenant_id)
  FROM of_${table} last WHERE last.tenant_id IS NOT NULL`;

/**
 * Finds tenants with entries or charges, but without books. All other checks go through the tenants of the books and of
 * the admission store, so they would pass such a tenant over.
 */
export async function auditMissingBooks(dataSource: DataSource): Promise<Found> {
  const rows = await query<{ tenant_id: string }>(
    dataSource,
    `WITH RECURSIVE of_journal_entry AS (${tenantsIn('journal_entry')}), of_charge AS (${tenantsIn('charge')})
     SELECT tenant_id FROM (SELECT tenant_id FROM of_journal_entry UNION SELECT tenant_id FROM of_charge) t
     WHERE tenant_id IS NOT NULL AND NOT EXISTS (SELECT FROM tenant_books b WHERE b.tenant_id = t.tenant_id)
     ORDER BY tenant_id LIMIT ${MAX_NAMED_OF_PART + 1}`,
  );
  return named(
    rows.map(({ tenant_id: tenantId }) => ({
      check: 'every tenant with entries or charges has books',
      tenantId,
      expected: 'books',
      actual: 'none',
      ids: [],
    })),
  );
}
