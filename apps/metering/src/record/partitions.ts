import { Injectable, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { query, sqlState, transaction } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { MeteringDataSource } from '../database';

/**
 * The previous month (an event may be late), this one, and the next two. So a running process needs a new one within
 * two months.
 */
const MONTHS_BEHIND = 1;
const MONTHS_AHEAD = 2;
const EVERY_MS = 24 * 60 * 60 * 1000;
const RETRY_MS = 60_000;

interface Month {
  /** `usage_event_YYYY_MM` */
  table: string;
  year: number;
  /** 1 to 12 */
  month: number;
}

/**
 * Keeps the months of `usage_event` ready, at the start and daily. Any number of processes may do it at once. An event
 * without its month goes into the default partition and moves once the month is made. So being late causes no loss.
 */
@Injectable()
export class Partitions implements OnModuleInit, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.ensure(),
    // Until it works, the default partition accepts all rows.
    failed: (error) =>
      logger('metering').error(
        { err: error, sqlState: sqlState(error) },
        'the partitions of usage_event could not be created; retrying',
      ),
    everyMs: EVERY_MS,
    retryMs: RETRY_MS,
  });

  constructor(private readonly dataSource: MeteringDataSource) {}

  async onModuleInit(): Promise<void> {
    this.task.start();
    await this.task.current;
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /** Makes the missing months around `nowMs`, each in its own transaction. */
  async ensure(nowMs = Date.now()): Promise<void> {
    for (let offset = -MONTHS_BEHIND; offset <= MONTHS_AHEAD; offset++) {
      const month = monthOf(nowMs, offset);
      if (await isAttached(this.dataSource.manager, month)) continue;
      // Calls a function of the schema's owner, because this service owns no table: functions/months.sql.
      await transaction(this.dataSource, (tx) => query(tx, 'SELECT add_month($1, $2)', [month.year, month.month]));
    }
  }
}

async function isAttached(tx: EntityManager, { table }: Month): Promise<boolean> {
  const rows = await query(
    tx,
    `SELECT 1 FROM pg_inherits WHERE inhparent = 'usage_event'::regclass AND inhrelid = to_regclass($1)`,
    [table],
  );
  return rows.length > 0;
}

function monthOf(nowMs: number, offset: number): Month {
  const now = new Date(nowMs);
  const start = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset, 1));
  const table = `usage_event_${start.toISOString().slice(0, 7).replace('-', '_')}`;
  return { table, year: start.getUTCFullYear(), month: start.getUTCMonth() + 1 };
}
