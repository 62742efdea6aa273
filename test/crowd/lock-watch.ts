import type { TestDatabase } from '@tollgate/testing';
import { Client } from 'pg';

const LOOK_EVERY_MS = 100;

/** Looks every 100 ms how long sessions of a database have been waiting for a lock, and counts its deadlocks. Advisory locks are waited for on purpose, and are left out. */
export class LockWatch {
  longestWaitMs = 0;
  looks = 0;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> = Promise.resolve();
  private readonly client: Client;

  constructor(private readonly database: TestDatabase) {
    this.client = new Client({ connectionString: database.url, application_name: 'lock-watch' });
  }

  async start(): Promise<void> {
    await this.client.connect();
    this.timer = setInterval(() => (this.looking = this.looking.then(() => this.look())), LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.looking;
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
    const { rows } = await this.client.query<{ wait_ms: string }>(
      `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart) * 1000), 0) AS wait_ms
       FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND l.locktype <> 'advisory' AND a.datname = current_database()`,
    );
    this.looks++;
    this.longestWaitMs = Math.max(this.longestWaitMs, Number(rows[0]!.wait_ms));
  }
}
