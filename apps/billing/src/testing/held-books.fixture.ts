import { eventually, type TestDatabase } from '@tollgate/testing';
import type { DataSource } from 'typeorm';

export interface HeldBooks {
  /** Until this many transactions wait for a lock in this database. */
  awaitWaiting(count: number): Promise<void>;
  release(): Promise<void>;
}

/** Locks the books of a tenant, which exist, in another transaction, until they are released. */
export async function holdBooks(database: TestDatabase, dataSource: DataSource, tenantId: string): Promise<HeldBooks> {
  const runner = dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query('SELECT FROM tenant_books WHERE tenant_id = $1 FOR UPDATE', [tenantId]);
  return {
    awaitWaiting: (count) => awaitWaiting(database, count),
    release: async () => {
      await runner.commitTransaction();
      await runner.release();
    },
  };
}

/** Until this many transactions wait for a lock in this database. */
export async function awaitWaiting(database: TestDatabase, count: number): Promise<void> {
  await eventually(async () => {
    const waiting = await database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    expect(waiting).toHaveLength(count);
  });
}
