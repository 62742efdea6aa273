import { RequestError } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { HOUR_MS } from '../hours';

/** Whether this time needs the events of its hour, because the rollups have only full hours. */
export const ofPartialHour = (ms: number): boolean => ms % HOUR_MS !== 0;

/**
 * Refuses times whose events are no longer kept, because an answer would lack them. RequestError invalid_parameter,
 * with `instead`.
 */
export async function checkKept(dataSource: DataSource, neededMs: readonly number[], instead: string): Promise<void> {
  if (neededMs.length === 0) return;
  const earliest = new Date(Math.min(...neededMs)).toISOString();
  const [row] = await query<{ kept_from: Date }>(
    dataSource,
    `SELECT kept_from() AS kept_from WHERE kept_from() > $1::timestamptz`,
    [earliest],
  );
  if (row)
    throw new RequestError(
      'invalid_parameter',
      `Single requests are kept from ${row.kept_from.toISOString()} on. ${earliest} is before that. ${instead}`,
    );
}
