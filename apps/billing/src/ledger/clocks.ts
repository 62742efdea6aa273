import type { DataSource, EntityManager } from 'typeorm';

/** The clocks that decide the month. */
export interface Clocks {
  /** The clock of this process. */
  now: () => Date;
  /** PostgreSQL's clock. Absent: `now` alone decides, for tests of other times. */
  databaseNow?: ((on: DataSource | EntityManager) => Promise<Date>) | undefined;
}

/** Both clocks, and the earlier one: a month is over when it is by both, so one clock that is ahead ends nothing. */
export async function readClocks(
  { now, databaseNow }: Clocks,
  on: DataSource | EntityManager,
): Promise<{ own: Date; database: Date; earlier: Date }> {
  const own = now();
  const database = (await databaseNow?.(on)) ?? own;
  return { own, database, earlier: own < database ? own : database };
}
