import { newId, type BudgetEvent } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, queryPrepared } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import type { ReadCharge } from '../ledger/core/gather';
import { periodOf } from '../ledger/core/period';
import { reachedThresholds } from './thresholds';

/** Spending of a tenant (key '') or a key in a month. */
interface Spending {
  tenantId: string;
  period: string;
  keyId: string;
  nanos: bigint;
  /**
   * Null: there is no default. Undefined: no charge states it, because metering sends a repeat without it. The stored
   * default stays.
   */
  defaultCents: number | null | undefined;
}

/** A budget in force, and the spending against it. */
export interface WatchedRow {
  tenant_id: string;
  period: string;
  key_id: string;
  spent_nanos: string;
  cents: string;
  thresholds: number[] | null;
  /** Thresholds that a change of the budget crossed, and that are recorded for that change. */
  crossed: number[];
}

/**
 * The amount of the budget in force, or null if there is none, from a `budget` row b (or none) and a `budget_month` row
 * m.
 */
export const IN_FORCE = `
  CASE coalesce(b.kind, 'default')
    WHEN 'amount' THEN b.cents
    WHEN 'default' THEN m.default_cents
  END`;

/**
 * Whether the budget b (or none) was in force in the month m. A budget that was changed since says nothing about the
 * charges of that month that come late.
 */
const IS_OF_MONTH = `(b.changed_at IS NULL OR to_char(b.changed_at AT TIME ZONE 'UTC', 'YYYY-MM') <= m.period)`;

/**
 * Adds new charges to the spending of their tenants and keys, in the months in which the requests ended. Records the
 * thresholds that this reaches. It runs in the transaction that gathers the charges, under the lock of the tenants'
 * books, so each charge counts once and each threshold is recorded once.
 */
export async function addSpending(
  tx: EntityManager,
  charges: readonly ReadCharge[],
  defaultThresholds: readonly number[],
): Promise<void> {
  if (charges.length === 0) return;
  const sums = sumUp(charges);
  const watched = await queryPrepared<WatchedRow>(
    tx,
    `WITH m AS (
       INSERT INTO budget_month AS stored (tenant_id, period, key_id, spent_nanos, default_cents)
       SELECT n.tenant_id, n.period, n.key_id, n.nanos,
         CASE WHEN n.says THEN n.default_cents ELSE before.default_cents END
       FROM unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::bigint[], $6::boolean[])
         AS n (tenant_id, period, key_id, nanos, default_cents, says)
       LEFT JOIN budget_month before ON before.tenant_id = n.tenant_id AND before.period = n.period
         AND before.key_id = n.key_id
       ON CONFLICT (tenant_id, period, key_id) DO UPDATE
         SET spent_nanos = stored.spent_nanos + excluded.spent_nanos, default_cents = excluded.default_cents
       RETURNING tenant_id, period, key_id, spent_nanos, default_cents, crossed)
     SELECT m.tenant_id, m.period, m.key_id, m.spent_nanos, ${IN_FORCE} AS cents, b.thresholds, m.crossed
     FROM m LEFT JOIN budget b ON b.tenant_id = m.tenant_id AND b.key_id = m.key_id
     WHERE ${IN_FORCE} IS NOT NULL AND ${IS_OF_MONTH} ORDER BY m.tenant_id, m.period, m.key_id`,
    [
      sums.map((sum) => sum.tenantId),
      sums.map((sum) => sum.period),
      sums.map((sum) => sum.keyId),
      sums.map((sum) => String(sum.nanos)),
      sums.map((sum) => sum.defaultCents ?? null),
      sums.map((sum) => sum.defaultCents !== undefined),
    ],
  );
  await recordReached(tx, watched, defaultThresholds);
}

/** The thresholds that a budget has reached. */
export function reachedBy(row: WatchedRow, defaultThresholds: readonly number[]): number[] {
  return reachedThresholds(BigInt(row.spent_nanos), Number(row.cents), row.thresholds ?? defaultThresholds);
}

/**
 * Records the thresholds that these budgets have reached and that are not recorded yet, and puts each into the outbox.
 * Spending records a threshold once a month. A change of a budget records those that it crosses, except those that
 * spending has recorded.
 * @param changedVersion the version of the one budget that was changed; 0: spending reached the thresholds
 */
export async function recordReached(
  tx: EntityManager,
  watched: readonly WatchedRow[],
  defaultThresholds: readonly number[],
  changedVersion = '0',
): Promise<void> {
  const reached = watched.flatMap((row): BudgetEvent[] =>
    reachedBy(row, defaultThresholds)
      .filter((thresholdPercent) => !row.crossed.includes(thresholdPercent))
      .map((thresholdPercent) => ({
        id: newId('evt'),
        tenantId: row.tenant_id,
        keyId: row.key_id || null,
        period: row.period,
        thresholdPercent,
        budgetCents: Number(row.cents),
        spentNanos: row.spent_nanos,
        at: new Date().toISOString(),
      })),
  );
  if (reached.length === 0) return;
  const fresh = await query<{ id: string }>(
    tx,
    `INSERT INTO budget_event (id, tenant_id, key_id, period, threshold_percent, budget_cents, spent_nanos, recorded_at,
       changed_version)
     SELECT n.*, $9::bigint
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::numeric[],
       $8::timestamptz[]) AS n (id, tenant_id, key_id, period, threshold_percent)
     WHERE NOT EXISTS (SELECT FROM budget_event e
       WHERE (e.tenant_id, e.period, e.key_id, e.threshold_percent) =
          (n.tenant_id, n.period, n.key_id, n.threshold_percent)
         AND e.changed_version = 0)
     ON CONFLICT DO NOTHING RETURNING id`,
    [
      reached.map((event) => event.id),
      reached.map((event) => event.tenantId),
      reached.map((event) => event.keyId ?? ''),
      reached.map((event) => event.period),
      reached.map((event) => event.thresholdPercent),
      reached.map((event) => event.budgetCents),
      reached.map((event) => event.spentNanos),
      reached.map((event) => event.at),
      changedVersion,
    ],
  );
  const ids = new Set(fresh.map(({ id }) => id));
  await enqueue(
    tx,
    'budget-events',
    reached.filter(({ id }) => ids.has(id)),
  );
}

/** One sum per tenant, key and month. The defaults come from the last charge that states them. */
function sumUp(charges: readonly ReadCharge[]): Spending[] {
  const sums = new Map<string, Spending>();
  const add = ({ tenantId, endedAt, costNanos, defaultBudgets }: ReadCharge, keyId: string, cents?: number) => {
    const period = periodOf(endedAt);
    const name = JSON.stringify([tenantId, period, keyId]);
    const before = sums.get(name);
    const defaultCents = defaultBudgets ? (cents ?? null) : before?.defaultCents;
    sums.set(name, { tenantId, period, keyId, nanos: (before?.nanos ?? 0n) + costNanos, defaultCents });
  };
  for (const charge of charges) {
    add(charge, '', charge.defaultBudgets?.tenantCents);
    add(charge, charge.keyId, charge.defaultBudgets?.keyCents);
  }
  return [...sums.values()];
}
