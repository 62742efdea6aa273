import {
  MAX_NAMED_OF_PART,
  named,
  NANOS_PER_CENT,
  type Difference,
  type Found,
  type JournalHead,
} from '@tollgate/contracts';
import { withStatementTimeout, type Query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { CHAIN_CHECK, headsOf } from './chain';
import { INVOICE_CHECKS } from './invoice-audit';
import { SPENDING_CHECK } from './spending-audit';

/**
 * One statement reads all rows of up to 200 tenants, and one of them may have nearly all. A whole proof of 10 million
 * charges takes 80 s.
 */
const STATEMENT_TIMEOUT_MS = 15 * 60 * 1_000;

/** The sums of the ledger's own rows. */
export interface AuditTotals {
  chargesNanos: bigint;
  debitsNanos: bigint;
  carriedNanos: bigint;
}

/** The findings in the rows of some tenants. */
export interface Audit extends Found {
  totals: AuditTotals;
  heads: JournalHead[];
}

interface TenantRow {
  tenant_id: string;
  balance_cents: string;
  last_sequence: string;
  last_cover: string;
  carried_nanos: string;
  unposted_nanos: string;
  entries: string;
  entries_cents: string;
  debited_cents: string;
  charges_nanos: string;
  covers: string;
  chain_end_nanos: string;
  overrun_nanos: string;
  unposted_overrun_nanos: string;
  overrun_cents: string;
}

/**
 * Proves the ledger of some tenants from its rows, in one snapshot, without trusting a running sum: charges = debits +
 * carried remainder; balance = Σ entries; every entry balances and has its hash; every charge is covered exactly once
 * or still gathering. The database computes the sums, so memory here does not grow with the rows.
 */
export async function auditLedger(
  dataSource: DataSource,
  tenantIds: readonly string[],
  stopped?: AbortSignal,
): Promise<Audit> {
  return dataSource.transaction('REPEATABLE READ', async (tx) => {
    const query = await withStatementTimeout(tx, STATEMENT_TIMEOUT_MS, stopped);
    const differences: Difference[] = [];
    const totals: AuditTotals = { chargesNanos: 0n, debitsNanos: 0n, carriedNanos: 0n };
    for (const row of await query<TenantRow>(TENANTS_SQL, [tenantIds])) {
      totals.chargesNanos += BigInt(row.charges_nanos);
      totals.debitsNanos += BigInt(row.debited_cents) * NANOS_PER_CENT;
      totals.carriedNanos += BigInt(row.unposted_nanos);
      differences.push(...auditTenant(row));
    }
    let truncated = false;
    for (const { check, sql } of [...ROW_CHECKS, CHAIN_CHECK, ...INVOICE_CHECKS, SPENDING_CHECK]) {
      const found = await rowDifferences(query, check, sql, tenantIds);
      differences.push(...found.differences);
      truncated ||= found.truncated === true;
    }
    const heads = await headsOf(query, tenantIds);
    return { totals, differences, heads, ...(truncated ? { truncated } : {}) };
  });
}

function auditTenant(row: TenantRow): Difference[] {
  const debitsNanos = BigInt(row.debited_cents) * NANOS_PER_CENT;
  const checks: [check: string, expected: bigint | string, actual: bigint | string][] = [
    ['charges = usage debits + carried', BigInt(row.charges_nanos), debitsNanos + BigInt(row.unposted_nanos)],
    ['balance = sum of entries', row.entries_cents, row.balance_cents],
    ['entries are numbered without a gap', row.last_sequence, row.entries],
    ['charge ranges are numbered without a gap', row.last_cover, row.covers],
    ['carried = remainder of the newest charge range', row.chain_end_nanos, row.carried_nanos],
    [
      'overruns of the charges = account overrun + not booked yet',
      BigInt(row.overrun_nanos),
      BigInt(row.overrun_cents) * NANOS_PER_CENT + BigInt(row.unposted_overrun_nanos),
    ],
  ];
  return checks
    .filter(([, expected, actual]) => expected !== actual)
    .map(([check, expected, actual]) => ({
      check,
      tenantId: row.tenant_id,
      expected: String(expected),
      actual: String(actual),
      ids: [],
    }));
}

async function rowDifferences(query: Query, check: string, sql: string, tenantIds: readonly string[]): Promise<Found> {
  const rows = await query<Omit<Difference, 'check'>>(`${sql} LIMIT ${MAX_NAMED_OF_PART + 1}`, [tenantIds]);
  return named(rows.map((row) => ({ check, ...row })));
}

/**
 * Charges are by far the most rows. They are summed from indexes alone: cost from charge_seq, overrun from
 * charge_overrun.
 */
export const TENANTS_SQL = `
  SELECT b.tenant_id, b.balance_cents, b.last_sequence, b.last_cover, b.carried_nanos,
    b.carried_nanos + b.gathered_nanos AS unposted_nanos, b.overrun_nanos AS unposted_overrun_nanos,
    e.entries, e.entries_cents, e.debited_cents, c.charges_nanos, r.overrun_nanos, o.overrun_cents,
    v.covers, v.chain_end_nanos
  FROM tenant_books b,
    LATERAL (SELECT count(*) AS entries, coalesce(sum(amount_cents), 0) AS entries_cents,
        coalesce(-sum(amount_cents) FILTER (WHERE type = 'usage'), 0) AS debited_cents
      FROM journal_entry WHERE tenant_id = b.tenant_id) e,
    LATERAL (SELECT coalesce(sum(cost_nanos), 0) AS charges_nanos FROM charge WHERE tenant_id = b.tenant_id) c,
    LATERAL (SELECT coalesce(sum(overrun_nanos), 0) AS overrun_nanos
      FROM charge
      WHERE tenant_id = b.tenant_id AND overrun_nanos > 0) r,
    LATERAL (SELECT coalesce(-sum(p.amount_cents), 0) AS overrun_cents
      FROM posting p
      JOIN journal_entry j ON j.id = p.entry_id
      WHERE j.tenant_id = b.tenant_id AND p.account = 'overrun') o,
    LATERAL (SELECT count(*) AS covers,
      coalesce((array_agg(carried_out_nanos ORDER BY number DESC))[1], 0) AS chain_end_nanos
      FROM coverage WHERE tenant_id = b.tenant_id) v
  WHERE b.tenant_id = ANY($1)`;

/** Each returns the wrong rows, as "tenantId", the entries' ids, expected and actual. */
const ROW_CHECKS = [
  {
    check: 'postings of an entry sum to zero',
    sql: `SELECT e.tenant_id AS "tenantId", ARRAY[e.id] AS ids,
        format('%s: 0, credit %s', e.id, e.amount_cents) AS expected,
        format('%s: %s, credit %s', e.id, p.total, p.credit) AS actual
      FROM journal_entry e, LATERAL (SELECT coalesce(sum(amount_cents), 0) AS total,
        coalesce(sum(amount_cents) FILTER (WHERE account = 'credit'), 0) AS credit FROM posting WHERE entry_id = e.id) p
      WHERE e.tenant_id = ANY($1) AND (p.total <> 0 OR p.credit <> e.amount_cents)`,
  },
  {
    check: 'every entry continues the balance before it',
    sql: `SELECT tenant_id AS "tenantId", ARRAY[id] AS ids, format('%s: %s', id, running) AS expected,
        format('%s: %s', id, balance_after_cents) AS actual
      FROM (SELECT tenant_id, id, balance_after_cents,
        sum(amount_cents) OVER (PARTITION BY tenant_id ORDER BY sequence) AS running
        FROM journal_entry WHERE tenant_id = ANY($1)) e
      WHERE running <> balance_after_cents`,
  },
  {
    check: 'every charge range names its charges and sums them',
    sql: `SELECT v.tenant_id AS "tenantId", array_remove(ARRAY[v.entry_id], NULL) AS ids,
        format('%s:%s-%s: %s nanos, %s cents', v.period, v.from_seq, v.to_seq, v.charges_nanos, v.amount_cents)
          AS expected,
        format('%s charges, %s nanos, %s cents in %s', c.charges, c.nanos, -e.amount_cents, v.entry_id) AS actual
      FROM coverage v
      LEFT JOIN journal_entry e ON e.id = v.entry_id,
        LATERAL (SELECT count(*) AS charges, coalesce(sum(cost_nanos), 0) AS nanos FROM charge
          WHERE tenant_id = v.tenant_id AND period = v.period AND seq BETWEEN v.from_seq AND v.to_seq) c
      WHERE v.tenant_id = ANY($1) AND (c.charges <> v.to_seq - v.from_seq + 1 OR c.nanos <> v.charges_nanos
        OR v.charges_nanos + v.carried_in_nanos <> v.amount_cents::numeric * ${NANOS_PER_CENT} + v.carried_out_nanos
        OR coalesce(-e.amount_cents, 0) <> v.amount_cents)`,
  },
  {
    check: 'charge ranges form a chain without gap or overlap',
    sql: `SELECT tenant_id AS "tenantId", array_remove(ARRAY[entry_id], NULL) AS ids,
        format('%s: from charge %s of %s, carried in %s', number, last_to + 1, period, last_carried) AS expected,
        format('%s: from charge %s of %s, carried in %s', number, from_seq, period, carried_in_nanos) AS actual
      FROM (SELECT tenant_id, number, period, from_seq, carried_in_nanos, entry_id,
          lag(carried_out_nanos, 1, 0::bigint) OVER (PARTITION BY tenant_id ORDER BY number) AS last_carried,
          lag(to_seq, 1, 0::bigint) OVER (PARTITION BY tenant_id, period ORDER BY from_seq) AS last_to
        FROM coverage WHERE tenant_id = ANY($1)) v
      WHERE carried_in_nanos <> last_carried OR from_seq <> last_to + 1`,
  },
  {
    check: 'every usage entry has its charge range',
    sql: `SELECT e.tenant_id AS "tenantId", ARRAY[e.id] AS ids, e.id AS expected, 'none' AS actual FROM journal_entry e
      WHERE e.tenant_id = ANY($1) AND e.type = 'usage' AND NOT EXISTS (SELECT FROM coverage WHERE entry_id = e.id)`,
  },
  {
    // Looks up the next month of a tenant's charges in charge_seq, and reads no charge beside its first.
    check: 'every charge is in a month of its tenant',
    sql: `WITH RECURSIVE of_charges AS (
        SELECT tenant_id, (SELECT min(period) FROM charge c WHERE c.tenant_id = t.tenant_id) AS period
        FROM unnest($1::text[]) AS t (tenant_id)
        UNION ALL
        SELECT tenant_id, (SELECT min(period) FROM charge c WHERE c.tenant_id = o.tenant_id AND c.period > o.period)
        FROM of_charges o WHERE period IS NOT NULL)
      SELECT tenant_id AS "tenantId", '{}'::text[] AS ids, format('%s: a month with charges', period) AS expected,
        format('%s: no month', period) AS actual
      FROM of_charges o
      WHERE period IS NOT NULL
        AND NOT EXISTS (SELECT FROM tenant_month m WHERE m.tenant_id = o.tenant_id AND m.period = o.period)`,
  },
  {
    check: 'every month is the sum of its rows',
    sql: `SELECT m.tenant_id AS "tenantId", '{}'::text[] AS ids,
        format('%s: %s charges, covered to %s, %s nanos gathering, %s cents', m.period, c.charges, v.covered,
          c.gathering, v.cents) AS expected,
        format('%s: %s charges, covered to %s, %s nanos gathering, %s cents', m.period, m.last_seq, m.covered_seq,
          m.gathered_nanos, m.debited_cents) AS actual
      FROM tenant_month m,
        LATERAL (SELECT count(*) AS charges, coalesce(max(seq), 0) AS last,
          coalesce(sum(cost_nanos) FILTER (WHERE seq > m.covered_seq), 0) AS gathering
          FROM charge WHERE tenant_id = m.tenant_id AND period = m.period) c,
        LATERAL (SELECT coalesce(max(to_seq), 0) AS covered, coalesce(sum(amount_cents), 0) AS cents
          FROM coverage WHERE tenant_id = m.tenant_id AND period = m.period) v
      WHERE m.tenant_id = ANY($1)
        AND (c.charges <> m.last_seq OR c.last <> m.last_seq OR c.gathering <> m.gathered_nanos
        OR v.covered <> m.covered_seq OR v.cents <> m.debited_cents)`,
  },
];
