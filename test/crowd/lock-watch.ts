import type { TestDatabase } from '@tollgate/testing';
import { Client } from 'pg';

const LOOK_EVERY_MS = 100;

/**
 * Looks every 100 ms which sessions of a database wait for a lock, and counts its deadlocks. A wait is as long as the looks that saw it: a standstill of this process, whose own sessions hold
 * the locks, is one look. Advisory locks are waited for on purpose, and are left out.
 */
export class LockWatch {
  longestWaitMs = 0;
  looks = 0;
  /** In how many looks, one after the other, each wait of the last one was seen. */
  private seen = new Map<string, number>();
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
    const { rows } = await this.client.query<{ wait: string }>(
      `SELECT DISTINCT concat_ws(' ', pid, l.waitstart) AS wait
       FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND l.locktype <> 'advisory' AND a.datname = current_database()`,
    );
    this.looks++;
    this.seen = new Map(rows.map(({ wait }) => [wait, (this.seen.get(wait) ?? 0) + 1]));
    this.longestWaitMs = Math.max(this.longestWaitMs, ...[...this.seen.values()].map((looks) => looks * LOOK_EVERY_MS));
  }
}
