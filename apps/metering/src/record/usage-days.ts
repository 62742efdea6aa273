import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { query, sqlState, transaction, withStatementTimeout } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { MeteringDataSource } from '../database';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A day is folded so long after its end. */
const FOLD_AFTER_MS = 6 * HOUR_MS;
/**
 * Hours that began earlier may be folded, so who adds to them looks. The difference to FOLD_AFTER_MS is what the clocks
 * of two processes may differ by, and what a transaction may take.
 */
const MAY_BE_FOLDED_MS = 3 * HOUR_MS;
const EVERY_MS = 10 * 60_000;
/**
 * A process of the former version, which knows no days, records events until the upgrade has replaced it. Late ones
 * would be missing in days that are folded before that.
 */
const FIRST_AFTER_MS = 15 * 60_000;
/** A day of ten million hours of keys takes half a minute. */
const FOLD_TIMEOUT_MS = 10 * 60_000;
/** Days of one round, so that a round ends. The next one continues. */
const MAX_DAYS_A_ROUND = 1_000;

/** What `usage_hour` and `usage_day` sum, in the order of the statements here. */
const SUMS = [
  'requests',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'estimated',
  'cost_nanos',
  'reasoning_tokens',
];
const COLUMNS = SUMS.join(', ');
const SUMMED = SUMS.map((name) => `sum(${name})`).join(', ');

/**
 * Folds the hours of past days into `usage_day`, and into `model_hour` without their keys, a quarter of an hour after
 * the start and then every ten minutes. Any number of processes may do it. Queries take the days before
 * `usage_folded.until` from there, and everything else from `usage_hour`, in one snapshot (query/whole-hours.ts). So
 * the recording of events costs nothing more.
 *
 * A late event, of a day that is folded, is added to its sums by `addToDays`, in the transaction that records it. It
 * locks `until`, so a day never misses hours of a transaction that has not committed.
 */
@Injectable()
export class UsageDays implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly stopped = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly dataSource: MeteringDataSource) {}

  onApplicationBootstrap(): void {
    this.next(FIRST_AFTER_MS);
  }

  /** A day that is being folded is broken off, and folded after the next start. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopped.abort(new Error('metering is stopping'));
    clearTimeout(this.timer);
    await this.running;
  }

  /** Folds all days that ended long enough before `nowMs`, and returns how many. */
  async fold(nowMs = Date.now()): Promise<number> {
    let days = 0;
    while (days < MAX_DAYS_A_ROUND && !this.stopped.signal.aborted && (await this.foldNext(nowMs))) days += 1;
    return days;
  }

  /** Waits for another process that is folding. @returns false if there is nothing to fold */
  private foldNext(nowMs: number): Promise<boolean> {
    return transaction(this.dataSource, async (tx) => {
      const within = await withStatementTimeout(tx, FOLD_TIMEOUT_MS, this.stopped.signal);
      const [folded] = await within<{ until: Date | number }>('SELECT until FROM usage_folded FOR NO KEY UPDATE', []);
      const startMs = folded!.until instanceof Date ? folded!.until.getTime() : await firstDayMs(tx);
      if (startMs === null || startMs + DAY_MS + FOLD_AFTER_MS > nowMs) return false;
      const [start, end] = [startMs, startMs + DAY_MS].map((ms) => new Date(ms).toISOString());
      // Tenant by tenant, because usage_hour has no index by the hour alone.
      await query(tx, `SELECT set_config('enable_seqscan', 'off', true)`);
      await within(
        `INSERT INTO usage_day (tenant_id, day, model, key_id, ${COLUMNS})
         SELECT t.tenant_id, $1, h.* FROM tenant_sum t, LATERAL (
           SELECT model, key_id, ${SUMMED} FROM usage_hour
           WHERE tenant_id = t.tenant_id AND hour >= $1 AND hour < $2 GROUP BY model, key_id) h`,
        [start, end],
      );
      await within(
        `INSERT INTO model_hour (tenant_id, hour, model, ${COLUMNS})
         SELECT t.tenant_id, h.* FROM tenant_sum t, LATERAL (
           SELECT hour, model, ${SUMMED} FROM usage_hour
           WHERE tenant_id = t.tenant_id AND hour >= $1 AND hour < $2 GROUP BY hour, model) h`,
        [start, end],
      );
      await query(tx, 'UPDATE usage_folded SET until = $1', [end]);
      return true;
    });
  }

  /** Never rejects: until it works, queries read the hours. */
  private async keep(): Promise<void> {
    try {
      const days = await this.fold();
      if (days > 1) logger('metering').info({ days }, 'hours of usage were summed by day');
    } catch (error) {
      if (this.stopped.signal.aborted) return;
      logger('metering').warn({ err: error, sqlState: sqlState(error) }, 'hours of usage could not be summed by day');
    }
    if (this.stopped.signal.aborted) return;
    this.next(EVERY_MS);
  }

  private next(afterMs: number): void {
    this.timer = setTimeout(() => (this.running = this.keep()), afterMs).unref();
  }
}

/** The beginning of the first day with usage; null: there is none. */
async function firstDayMs(tx: EntityManager): Promise<number | null> {
  const [row] = await query<{ day: Date | null }>(
    tx,
    `SELECT date_trunc('day', min(h.hour), 'UTC') AS day FROM tenant_sum t, LATERAL (
       SELECT hour FROM usage_hour WHERE tenant_id = t.tenant_id ORDER BY hour LIMIT 1) h`,
  );
  return row?.day?.getTime() ?? null;
}

/** Whether an hour may be of a day that is folded. */
export const mayBeFolded = (hour: string, nowMs = Date.now()): boolean => Date.parse(hour) < nowMs - MAY_BE_FOLDED_MS;

/**
 * Adds the sums of late events to the days that are folded. Before the hours of the same events are written.
 * `hours`: statement parameters, as for `usage_hour` (roll-up.ts).
 */
export async function addToDays(tx: EntityManager, hours: readonly unknown[]): Promise<void> {
  // Waits for a day that is being folded, and keeps the next one from it until this transaction ends.
  await query(tx, 'SELECT until FROM usage_folded FOR SHARE');
  const late = `unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::numeric[], $11::bigint[]) AS late (tenant_id, hour, model, key_id, ${COLUMNS})
    WHERE hour < (SELECT until FROM usage_folded)`;
  const added = SUMS.map((name) => `${name} = stored.${name} + excluded.${name}`).join(', ');
  await query(
    tx,
    `INSERT INTO usage_day AS stored (tenant_id, day, model, key_id, ${COLUMNS})
     SELECT tenant_id, date_trunc('day', hour, 'UTC') AS day, model, key_id, ${SUMMED} FROM ${late}
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
     ON CONFLICT (tenant_id, day, model, key_id) DO UPDATE SET ${added}`,
    [...hours],
  );
  await query(
    tx,
    `INSERT INTO model_hour AS stored (tenant_id, hour, model, ${COLUMNS})
     SELECT tenant_id, hour, model, ${SUMMED} FROM ${late}
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (tenant_id, hour, model) DO UPDATE SET ${added}`,
    [...hours],
  );
}
