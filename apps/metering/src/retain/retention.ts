import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { sqlState, withStatementTimeout } from '@tollgate/postgres';
import { Counter, logger, metrics, PeriodicTask } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { monthOverdue, overdueSeconds } from './overdue';

export const DEFAULT_USAGE_KEPT_MONTHS = 13;
/** Messages of 90 days may still be delivered again. close_month refuses less. */
export const MIN_USAGE_KEPT_MONTHS = 3;
/** The months of a hundred years. */
export const MAX_USAGE_KEPT_MONTHS = 1_200;
const FIRST_MS = 60_000;
const EVERY_MS = 60 * 60_000;
/** Summing a month of 100 million events takes some minutes. */
const STEP_TIMEOUT_MS = 30 * 60_000;
/** Months that one round retires, sums and drops. The next round continues. */
const MAX_MONTHS_A_ROUND = 12;
const FORGET_AT_ONCE = 10_000;
/** Callers' names that one round deletes at most, in parts. */
const MAX_FORGET_PARTS = 1_000;

const dropped = new Counter({
  name: 'tollgate_metering_dropped_months_total',
  help: 'Months of usage events that were dropped because they are no longer kept',
  registers: [metrics],
});

/** What a round did. Months in the form 2026-11. */
export interface RetentionRound {
  closed: string[];
  summed: string[];
  dropped: string[];
  /** Why a month cannot be dropped. */
  waiting: string[];
}

type Step = 'close_month' | 'sum_month' | 'drop_month';

/**
 * Drops the months of `usage_event` that are no longer kept, step by step, each in its own transaction:
 *
 * 1. Retire the oldest month: it takes no more events, so it cannot change.
 * 2. Prove that the rollups have its sums, and keep its totals.
 * 3. Billing confirms that its charges have the same totals (apps/billing/src/reconcile/retired-months.ts).
 * 4. A day later, drop it. A repeat of its events changes nothing (consume/usage-consumer.ts).
 *
 * The steps are functions of the schema's owner, which check their conditions and take a lock
 * (functions/retention.sql). So any number of processes may do it at once, and may stop after any step.
 */
export class Retention implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.round(),
    failed: (error) => this.failed(error),
    firstMs: FIRST_MS,
    everyMs: EVERY_MS,
  });

  private stopGauge: () => void = () => {};

  constructor(
    private readonly dataSource: DataSource,
    private readonly keptMonths: number,
  ) {}

  onApplicationBootstrap(): void {
    this.stopGauge = monthOverdue.from(() => overdueSeconds(this.dataSource, this.keptMonths));
    this.task.start();
  }

  /** An unfinished step is aborted. */
  async beforeApplicationShutdown(): Promise<void> {
    this.stopGauge();
    await this.task.stop(new Error('metering is stopping'));
  }

  async round(): Promise<RetentionRound> {
    const round: RetentionRound = { closed: [], summed: [], dropped: [], waiting: [] };
    await this.repeat('drop_month', ({ month }) => {
      dropped.inc();
      logger('metering').info({ month }, 'a month of usage events was dropped; its sums stay');
      round.dropped.push(month);
      return true;
    });
    await this.forgetCallers();
    await this.close(round);
    await this.repeat('sum_month', ({ month, reason }) => {
      if (reason === '') return round.summed.push(month) > 0;
      logger('metering').warn({ month, reason }, 'a month of usage events cannot be dropped now');
      round.waiting.push(`${month}: ${reason}`);
      return false;
    });
    return round;
  }

  private close(round: RetentionRound): Promise<void> {
    return this.repeat('close_month', ({ month }) => {
      logger('metering').info({ month }, 'a month was retired; its events will be dropped');
      round.closed.push(month);
      return true;
    });
  }

  private async repeat(step: Step, done: (row: { month: string; reason: string }) => boolean): Promise<void> {
    for (let months = 0; months < MAX_MONTHS_A_ROUND; months++) {
      const row = await this.call<{ month: string | null; reason: string }>(STEPS[step], [
        ...(step === 'close_month' ? [this.keptMonths] : []),
      ]);
      if (row.month === null || !done({ month: row.month, reason: row.reason })) return;
    }
  }

  private async forgetCallers(): Promise<void> {
    for (let part = 0; part < MAX_FORGET_PARTS; part++) {
      const row = await this.call<{ forgotten: number }>('SELECT forget_callers($1) AS forgotten', [FORGET_AT_ONCE]);
      if (row.forgotten < FORGET_AT_ONCE) return;
    }
  }

  private call<R extends object>(sql: string, values: unknown[]): Promise<R> {
    return this.dataSource.transaction(async (tx) => {
      const query = await withStatementTimeout(tx, STEP_TIMEOUT_MS, this.task.ending);
      const [row] = await query<R>(sql, values);
      return row!;
    });
  }

  private failed(error: unknown): void {
    logger('metering').warn(
      { err: error, sqlState: sqlState(error) },
      'old months of usage events could not be dropped; retrying',
    );
  }
}

const STEPS: Record<Step, string> = {
  close_month: `SELECT to_char(close_month($1), 'YYYY-MM') AS month, '' AS reason`,
  sum_month: `SELECT to_char(month, 'YYYY-MM') AS month, reason FROM sum_month()`,
  drop_month: `SELECT to_char(drop_month(), 'YYYY-MM') AS month, '' AS reason`,
};
