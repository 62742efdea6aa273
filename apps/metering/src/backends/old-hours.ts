import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { MAX_COMPARED_HOURS } from '@tollgate/contracts';
import { changedRows } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';
import { HOUR_MS, hourOf } from '../hours';

const FIRST_MS = 60_000;
const EVERY_MS = 60 * 60_000;
/** Rows of a statement, so that each takes less than a second. */
const DELETED_AT_ONCE = 10_000;
/** Statements of one round for each table. The next round continues. */
const MAX_PARTS = 100;

/**
 * Deletes the hours of `backend_hour` and `engine_hour` that no comparison reads any more (compare.ts). Any number of
 * processes may do it at once. A row that is in use, by a late event or another process, is left to the next round.
 */
@Injectable()
export class OldHours implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.delete(),
    failed: (error) => logger('metering').warn({ err: error }, 'old hours of backends were not deleted; retrying'),
    firstMs: FIRST_MS,
    everyMs: EVERY_MS,
  });

  constructor(private readonly dataSource: MeteringDataSource) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  /** Ends after the current statement. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  async delete(nowMs = Date.now()): Promise<void> {
    const before = new Date(hourOf(nowMs) - MAX_COMPARED_HOURS * HOUR_MS);
    for (const table of ['backend_hour', 'engine_hour'])
      for (let part = 0; part < MAX_PARTS && !this.task.ending.aborted; part++)
        if ((await this.deletePart(table, before)) < DELETED_AT_ONCE) break;
  }

  private deletePart(table: string, before: Date): Promise<number> {
    return changedRows(
      this.dataSource,
      `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
         SELECT ctid FROM ${table} WHERE hour < $1 ORDER BY hour LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [before, DELETED_AT_ONCE],
    );
  }
}
