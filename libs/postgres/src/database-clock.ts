import type { DataSource, EntityManager } from 'typeorm';
import { query } from './statements';

/** PostgreSQL's clock now, also within a transaction that began before. */
export async function databaseClock(on: DataSource | EntityManager): Promise<Date> {
  const [row] = await query<{ now: Date }>(on, 'SELECT clock_timestamp() AS now');
  return row!.now;
}
