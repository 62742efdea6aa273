import { idTimeMs, type MonthTotals, type RetiredMonth } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';

/** Months are retired three months after their end at the earliest (functions/retention.sql). */
const NEVER_RETIRED_MS = 80 * 24 * 60 * 60 * 1000;
/** The months of a hundred years. */
const MAX_MONTHS = 1_200;

/** Whether the month of an id may be retired. Nearly always false, so that batches need not look. */
export function mayBeRetired(id: string): boolean {
  return idTimeMs(id) < Date.now() - NEVER_RETIRED_MS;
}

/** The least id that is not of a retired month; empty if none is retired. */
export async function retiredBefore(tx: EntityManager): Promise<string> {
  const [row] = await query<{ until_id: string }>(
    tx,
    `SELECT coalesce(max(until_id), '') AS until_id FROM retired_month`,
  );
  return row!.until_id;
}

/** The months that are retired and summed, oldest first. */
export async function retiredMonths(dataSource: DataSource): Promise<RetiredMonth[]> {
  return query<RetiredMonth>(
    dataSource,
    `SELECT to_char(month, 'YYYY-MM') AS month, from_id AS "fromId", until_id AS "untilId", events::float8 AS events,
       cost_nanos::text AS "costNanos", digest::text AS digest, details_digest::text AS "detailsDigest",
       confirmed_at IS NOT NULL AS confirmed
     FROM retired_month WHERE summed_at IS NOT NULL ORDER BY retired_month.month LIMIT $1`,
    [MAX_MONTHS],
  );
}

/**
 * Whether these totals of billing's charges equal the totals of the month's events. If so, the month may be dropped.
 */
export async function confirmMonth(dataSource: DataSource, totals: MonthTotals): Promise<boolean> {
  const [row] = await query<{ confirmed: boolean }>(
    dataSource,
    `SELECT confirm_month(to_date($1, 'YYYY-MM'), $2, $3, $4) AS confirmed`,
    [totals.month, totals.events, totals.costNanos, totals.digest],
  );
  return row!.confirmed;
}
