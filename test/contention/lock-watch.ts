import type { TestDatabase } from '@tollgate/testing';
import { Client } from 'pg';

const LOOK_EVERY_MS = 100;
/** Of the time between two looks, what counts at most: more is a standstill of this process. */
const MOST_BETWEEN_LOOKS_MS = 250;

/**
 * Looks every 100 ms which sessions of a database wait for a lock and how long, and counts its deadlocks. A standstill
 * of this process, whose own sessions hold the locks, is no wait. Advisory locks are waited for on purpose, and are
 * left out.
 */
export class LockWatch {
  longestWaitMs = 0;
  looks = 0;
  /** The waits of the last look, with their milliseconds. */
  private seen = new Map<string, number>();
  private lookedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();
  private readonly client: Client;

  constructor(private readonly database: TestDatabase) {
    this.client = new Client({ connectionString: database.url, application_name: 'lock-watch' });
  }

  async start(): Promise<void> {
    await this.client.connect();
    this.lookAgain();
  }

  /** Counted from the last look's end: looks that were held up must not follow each other at once. */
  private lookAgain(): void {
    this.timer = setTimeout(() => (this.looking = this.look().then(() => this.lookAgain())), LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    await this.looking;
    clearTimeout(this.timer);
    await this.client.end();
  }

  /** Since the database was made. Sessions tell of theirs when they end: ask when all have. */
  async deadlocks(): Promise<number> {
    const [row] = await this.database.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(row!.deadlocks);
  }

  private async look(): Promise<void> {
    const { rows } = await this.client.query<{ wait: string; ms: number }>(
      `SELECT concat_ws(' ', pid, l.waitstart) AS wait,
              max(extract(epoch FROM clock_timestamp() - l.waitstart) * 1000)::float8 AS ms
       FROM pg_locks l JOIN pg_stat_activity a USING (pid)
       WHERE NOT l.granted AND l.locktype <> 'advisory' AND a.datname = current_database() GROUP BY 1`,
    );
    this.looks++;
    const sinceMs = Math.min(performance.now() - this.lookedMs, MOST_BETWEEN_LOOKS_MS);
    this.lookedMs = performance.now();
    this.seen = new Map(rows.map(({ wait, ms }) => [wait, Math.min(ms, (this.seen.get(wait) ?? 0) + sinceMs)]));
    this.longestWaitMs = Math.max(this.longestWaitMs, ...this.seen.values());
  }
}
