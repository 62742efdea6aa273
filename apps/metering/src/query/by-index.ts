import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';

/** Runs work in a transaction, for example of a data source. */
export interface Transactions {
  transaction<T>(work: (tx: EntityManager) => Promise<T>): Promise<T>;
}

/**
 * Runs statements that read a range of an index. The planner may take the range for a large part of the table, and read
 * all of it, with all processors. Seen with 10 million events: for a month of one tenant, which has a fifteenth of all
 * rollups, it reads the whole table of rollups.
 */
export function byIndex<T>(on: Transactions, work: (tx: EntityManager) => Promise<T>): Promise<T> {
  return on.transaction(async (tx) => {
    await query(
      tx,
      `SELECT set_config('enable_seqscan', 'off', true), set_config('max_parallel_workers_per_gather', '0', true),
         set_config('work_mem', '64MB', true)`,
    );
    return work(tx);
  });
}

/**
 * The same for pages in the order of an index. The planner may take the rest of a range for a few rows, and read and
 * sort all of it for each page. Seen with 300,000 events in a range: 0.8 s a page instead of 0.04 s.
 */
export function inIndexOrder<T>(on: Transactions, work: (tx: EntityManager) => Promise<T>): Promise<T> {
  return byIndex(on, async (tx) => {
    await query(tx, `SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`);
    return work(tx);
  });
}
