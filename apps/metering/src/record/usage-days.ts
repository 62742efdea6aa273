import { Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { databaseClock, query, sqlState, transaction, withStatementTimeout } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { MeteringDataSource } from '../database';
import { DAY_MS, HOUR_MS, hourOf } from '../hours';
import { inHours, unfinishedSql } from './unfinished';

/** Time from the end of an hour or a day until it is folded. */
const FOLD_AFTER_MS = 3 * HOUR_MS;
/**
 * Hours that began earlier may be folded, so a process that adds to them looks. An hour is folded FOLD_AFTER_MS after
 * its end at the earliest, which is two hours later. The clocks of two processes may differ by that, and a transaction
 * may take that long.
 */
const MAY_BE_FOLDED_MS = 2 * HOUR_MS;
const EVERY_MS = 10 * 60_000;
/**
 * A process of the former version, which knows no days, records events until the upgrade has replaced it. Late ones
 * would be missing in days that are folded before that.
 */
const FIRST_AFTER_MS = 15 * 60_000;
/** A day of ten million hours of keys takes half a minute. */
const FOLD_TIMEOUT_MS = 10 * 60_000;
/** Steps of one round, so that a round ends. The next one continues. */
const MAX_STEPS_A_ROUND = 1_000;

/** What `usage_hour` sums, in the order of the statements here. */
const AMOUNTS = [
  'requests',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'estimated',
  'cost_nanos',
  'reasoning_tokens',
];
/** What is folded. */
const SUMS = [...AMOUNTS, 'failed', 'client_closed'];
const COLUMNS = SUMS.join(', ');
const SUMMED = SUMS.map((name) => `sum(${name})`).join(', ');
const MADE_ANEW = SUMS.map((name) => `${name} = excluded.${name}`).join(', ');
const ADDED = SUMS.map((name) => `${name} = stored.${name} + excluded.${name}`).join(', ');
/** Tables of sums by day, and by what else. */
const DAY_TABLES = [
  ['usage_day', 'model, key_id'],
  ['key_day', 'key_id'],
] as const;
type Within = Awaited<ReturnType<typeof withStatementTimeout>>;
const range = (...ms: [number, number]) => ms.map((value) => new Date(value).toISOString());

const RANGE = { tenant: 'tenant_id = t.tenant_id', from: '$1', to: '$2' };
/** The hours of one tenant. `usage_hour` does not know how requests ended. */
const HOURS = `(
  SELECT hour, model, key_id, ${AMOUNTS.join(', ')}, 0 AS failed, 0 AS client_closed FROM usage_hour
  WHERE ${RANGE.tenant} AND hour >= $1 AND hour < $2
  UNION ALL
  SELECT hour, model, key_id, ${AMOUNTS.map(() => '0').join(', ')}, failed, client_closed
  FROM ${unfinishedSql(inHours(RANGE))} AS unfinished) AS hours`;

/**
 * Folds past hours into `model_hour`, without their keys, and past days into `usage_day`, and into `key_day` without
 * models, a quarter of an hour after the start and then every ten minutes, together with the requests that did not end
 * normally. Any number of processes may do it. Queries take what ended before `usage_folded.hours_until` and `until`
 * from there, and everything else from `usage_hour` and the events, in one snapshot (query/whole-hours.ts). So the
 * recording of events costs nothing more.
 *
 * A late event, of an hour that is folded, is added to these sums by `addToDays`, in the transaction that records it.
 * It locks the row of `usage_folded`, so what is folded never misses a transaction that has not committed.
 */
@Injectable()
export class UsageDays implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.foldAll(),
    failed: (error) => this.failed(error),
    firstMs: FIRST_AFTER_MS,
    everyMs: EVERY_MS,
  });

  constructor(private readonly dataSource: MeteringDataSource) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  /** Folding that is in progress is aborted, and repeated after the next start. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop(new Error('metering is stopping'));
  }

  /**
   * Folds everything that ended long enough ago, by the clocks of this process and of PostgreSQL: a day that is folded
   * too early would miss the events that follow. Returns the number of steps.
   */
  async fold(givenMs?: number): Promise<number> {
    const nowMs = givenMs ?? Math.min(Date.now(), (await databaseClock(this.dataSource)).getTime());
    let steps = 0;
    for (const next of [this.foldHours, this.foldDay])
      while (steps < MAX_STEPS_A_ROUND && !this.task.ending.aborted && (await next.call(this, nowMs))) steps += 1;
    return steps;
  }

  /** The hours of a day at most. @returns false if there is nothing to fold */
  private foldHours(nowMs: number): Promise<boolean> {
    return this.step('hours_until', async (within, startMs) => {
      const dueMs = hourOf(nowMs - FOLD_AFTER_MS);
      const endMs = Math.min(dueMs, (Math.floor(startMs / DAY_MS) + 1) * DAY_MS);
      if (startMs >= endMs) return null;
      await within(
        `INSERT INTO model_hour (tenant_id, hour, model, ${COLUMNS})
         SELECT t.tenant_id, h.* FROM tenant_sum t, LATERAL (
           SELECT hour, model, ${SUMMED} FROM ${HOURS} GROUP BY hour, model) h`,
        range(startMs, endMs),
      );
      return endMs;
    });
  }

  /** @returns false if there is nothing to fold */
  private foldDay(nowMs: number): Promise<boolean> {
    return this.step('until', async (within, startMs) => {
      const endMs = startMs + DAY_MS;
      if (endMs + FOLD_AFTER_MS > nowMs) return null;
      for (const [table, names] of DAY_TABLES)
        await within(
          `INSERT INTO ${table} (tenant_id, day, ${names}, ${COLUMNS})
           SELECT t.tenant_id, $1::timestamptz, h.* FROM tenant_sum t, LATERAL (
             SELECT ${names}, ${SUMMED} FROM ${HOURS} GROUP BY ${names}) h`,
          range(startMs, endMs),
        );
      // A process of the former version adds late events to `model_hour` only for days before `until`, so those of
      // later hours are missing there. From now on the database refuses such an event until that process is replaced.
      await within(
        `INSERT INTO model_hour (tenant_id, hour, model, ${COLUMNS})
         SELECT t.tenant_id, h.* FROM tenant_sum t, LATERAL (
           SELECT hour, model, ${SUMMED} FROM ${HOURS} GROUP BY hour, model
           EXCEPT SELECT hour, model, ${COLUMNS} FROM model_hour
             WHERE ${RANGE.tenant} AND hour >= $1 AND hour < $2) h
         WHERE h.hour < (SELECT hours_until FROM usage_folded)
         ON CONFLICT (tenant_id, hour, model) DO UPDATE SET ${MADE_ANEW}`,
        range(startMs, endMs),
      );
      return endMs;
    });
  }

  /**
   * Folds from a mark on, in one transaction. Waits for another process that is folding.
   *
   * @param work  returns the new mark, or null if there is nothing to fold
   */
  private step(
    mark: 'until' | 'hours_until',
    work: (within: Within, startMs: number) => Promise<number | null>,
  ): Promise<boolean> {
    return transaction(this.dataSource, async (tx) => {
      const within = await withStatementTimeout(tx, FOLD_TIMEOUT_MS, this.task.ending);
      const [folded] = await within<{ until: Date | number }>(
        `SELECT ${mark} AS until FROM usage_folded FOR NO KEY UPDATE`,
        [],
      );
      const startMs = folded!.until instanceof Date ? folded!.until.getTime() : await firstDayMs(tx);
      if (startMs === null) return false;
      // Tenant by tenant, because usage_hour has no index by the hour alone.
      await query(tx, `SELECT set_config('enable_seqscan', 'off', true)`);
      const endMs = await work(within, startMs);
      if (endMs === null) return false;
      await query(tx, `UPDATE usage_folded SET ${mark} = $1`, [new Date(endMs).toISOString()]);
      return true;
    });
  }

  private async foldAll(): Promise<void> {
    const steps = await this.fold();
    if (steps > 1) logger('metering').info({ steps }, 'hours of usage were summed by day');
  }

  /** Until it works, queries read the hours. */
  private failed(error: unknown): void {
    logger('metering').warn({ err: error, sqlState: sqlState(error) }, 'hours of usage could not be summed by day');
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

/** Whether an hour may be folded. */
export const mayBeFolded = (hour: string): boolean => Date.parse(hour) < Date.now() - MAY_BE_FOLDED_MS;

/**
 * Adds the sums of late events to what is folded. Call it before the hours of the same events are written. `hours`:
 * statement parameters, as for `usage_hour` (roll-up.ts), and the counts of failed and of closed requests.
 */
export async function addToDays(tx: EntityManager, hours: readonly unknown[]): Promise<void> {
  // Waits for hours that are being folded, and keeps the next ones from it until this transaction ends.
  await query(tx, 'SELECT FROM usage_folded FOR SHARE');
  const late = (mark: string) => `unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[],
    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::numeric[], $11::bigint[], $12::bigint[], $13::bigint[])
    AS late (tenant_id, hour, model, key_id, ${COLUMNS})
    WHERE hour < (SELECT ${mark} FROM usage_folded)`;
  for (const [table, names] of DAY_TABLES)
    await query(
      tx,
      `INSERT INTO ${table} AS stored (tenant_id, day, ${names}, ${COLUMNS})
       SELECT tenant_id, date_trunc('day', hour, 'UTC') AS day, ${names}, ${SUMMED} FROM ${late('until')}
       GROUP BY tenant_id, day, ${names} ORDER BY tenant_id, day, ${names}
       ON CONFLICT (tenant_id, day, ${names}) DO UPDATE SET ${ADDED}`,
      [...hours],
    );
  await query(
    tx,
    `INSERT INTO model_hour AS stored (tenant_id, hour, model, ${COLUMNS})
     SELECT tenant_id, hour, model, ${SUMMED} FROM ${late('hours_until')}
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (tenant_id, hour, model) DO UPDATE SET ${ADDED}`,
    [...hours],
  );
}
