import type { TestDatabase } from '@tollgate/testing';
import { Client } from 'pg';

const LOOK_EVERY_MS = 100;
/** At most this much of the time between two looks counts. More means that this process stood still. */
const MOST_BETWEEN_LOOKS_MS = 250;

/**
 * Looks every 100 ms which sessions of a database wait for a lock and how long, and counts its deadlocks. A standstill
 * of this process does not count, because its own sessions hold the locks. Advisory locks do not count, because
 * sessions wait for them on purpose.
 */
export class LockWatch {
  longestWaitMs = 0;
  looks = 0;
  /** The waits of the last look, in milliseconds. */
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

  /** Waits from the end of the last look, so that delayed looks do not follow each other at once. */
  private lookAgain(): void {
    this.timer = setTimeout(() => (this.looking = this.look().then(() => this.lookAgain())), LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    await this.looking;
    clearTimeout(this.timer);
    await this.client.end();
  }

  /** Deadlocks since the database was created. A session reports its own when it ends, so call this after all ended. */
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
