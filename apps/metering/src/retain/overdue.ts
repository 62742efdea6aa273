import { idBound, idTimeMs } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { PolledGauge } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';

/** Older ids have no month of their own (functions/retention.sql). */
const FIRST_ID = idBound('req', Date.UTC(2020, 0));

/**
 * Set by a query at each scrape. It reads what is there, not what the steps of the retention have done. So it also
 * grows if they fail, or find nothing to do.
 */
export const monthOverdue = new PolledGauge({
  name: 'tollgate_metering_month_overdue_seconds',
  help: 'Time since the oldest month of usage events was due to be dropped; 0 if none is due',
});

/** Seconds since the oldest month that is not dropped became due, by the clock of PostgreSQL; 0 if none is due. */
export async function overdueSeconds(dataSource: DataSource, keptMonths: number): Promise<number> {
  const [row] = await query<{ partition: string | null; least_id: string | null; now: Date }>(
    dataSource,
    `SELECT now(),
       (SELECT min(substring(relname FROM '^usage_event_(\\d{4}_\\d\\d)$'))
        FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'usage_event'::regclass) AS partition,
       (SELECT min(id) FROM usage_event_default
        WHERE id >= $1 AND id >= (SELECT coalesce(max(until_id), '') FROM retired_month)) AS least_id`,
    [FIRST_ID],
  );
  const { partition, least_id, now } = row!;
  const months = [
    ...(partition === null ? [] : [new Date(`${partition.replace('_', '-')}-01T00:00:00.000Z`)]),
    ...(least_id === null ? [] : [new Date(idTimeMs(least_id))]),
  ];
  if (months.length === 0) return 0;
  const dueMs = Math.min(...months.map((at) => Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + keptMonths + 1)));
  return Math.max(0, now.getTime() - dueMs) / 1_000;
}
