import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { query } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { ConsoleDataSource } from '../database';

const FIRST_MS = 5_000;
const INTERVAL_MS = 10 * 60_000;
/** Longer than any window in which tries to sign in are counted. */
const TRIES_KEPT = `interval '10 minutes'`;

const DELETIONS = [
  'DELETE FROM invitation WHERE expires_at <= now()',
  'DELETE FROM recovery WHERE expires_at <= now()',
  'DELETE FROM "session" WHERE "expiresAt" <= now()',
  'DELETE FROM "verification" WHERE "expiresAt" <= now()',
  `DELETE FROM "rateLimit" WHERE "lastRequest" < extract(epoch FROM now() - ${TRIES_KEPT}) * 1000`,
];

/**
 * Deletes what has expired. The rows have e-mail and remote addresses, of people who may never have had an account.
 * What creates such rows also deletes former ones, but perhaps nobody creates another one.
 */
@Injectable()
export class ExpiredRows implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: () => this.deleteAll(),
    failed: (error) => logger('console').warn({ reason: String(error) }, 'deleting expired rows failed; retrying'),
    firstMs: FIRST_MS,
    everyMs: INTERVAL_MS,
  });

  constructor(private readonly dataSource: ConsoleDataSource) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /** Several consoles may do it at the same time. */
  async deleteAll(): Promise<void> {
    for (const sql of DELETIONS) await query(this.dataSource, sql);
  }
}
