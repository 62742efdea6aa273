import { RequestError, type BillingFleet, type ReplyOf } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { openRejected } from '../gather/rejected';
import { overdueSeconds, uncoveredSeconds } from '../ledger/books-store';

const MAX_TENANTS = 200;
const MONTH_CHARS = 7;

/** Answers `billing.fleet`. */
export async function billingFleet(dataSource: DataSource): Promise<BillingFleet> {
  const { manager } = dataSource;
  const [[books], [posted], [waiting], rejectedCharges, overdue, uncovered] = await Promise.all([
    query<{ balance: string; unposted: string }>(
      manager,
      `SELECT coalesce(sum(balance_cents), 0) AS balance, coalesce(sum(carried_nanos + gathered_nanos), 0) AS unposted
       FROM tenant_books`,
    ),
    query<{ cents: string }>(manager, 'SELECT coalesce(sum(debited_cents), 0) AS cents FROM tenant_month'),
    query<{ seconds: number }>(
      manager,
      'SELECT extract(epoch FROM now() - created_at)::float8 AS seconds FROM outbox ORDER BY id LIMIT 1',
    ),
    openRejected(manager),
    overdueSeconds(manager),
    uncoveredSeconds(manager),
  ]);
  return {
    balanceCents: books!.balance,
    unpostedNanos: books!.unposted,
    postedCents: posted!.cents,
    postingOverdueSeconds: overdue,
    uncoveredSeconds: uncovered,
    updatesAgeSeconds: Math.max(0, waiting?.seconds ?? 0),
    rejectedCharges,
  };
}

/** Answers `billing.tenants.balances`. A tenant without books is left out. RequestError invalid_parameter. */
export async function tenantBalances(
  dataSource: DataSource,
  ids: readonly string[],
  now: Date,
): Promise<ReplyOf<'billing.tenants.balances'>> {
  if (!Array.isArray(ids) || ids.length > MAX_TENANTS)
    throw new RequestError('invalid_parameter', `ids must be a list of at most ${MAX_TENANTS} tenant ids.`);
  const rows = await query<{ tenantId: string; balance: string; debited: string }>(
    dataSource,
    `SELECT b.tenant_id AS "tenantId", b.balance_cents AS balance, coalesce(m.debited_cents, 0) AS debited
     FROM tenant_books b LEFT JOIN tenant_month m ON m.tenant_id = b.tenant_id AND m.period = $2
     WHERE b.tenant_id = ANY ($1)`,
    [ids, now.toISOString().slice(0, MONTH_CHARS)],
  );
  return {
    data: rows.map(({ tenantId, balance, debited }) => ({
      tenantId,
      balanceCents: Number(balance),
      debitedCents: Number(debited),
    })),
  };
}
