import { connectionConfig } from '@tollgate/postgres';
import { Client, type ClientConfig, type QueryConfig, type QueryResult, type QueryResultRow } from 'pg';
import type { Db } from 'pg-boss';
import { MAX_BATCH_MESSAGES } from '../messages';

/** The maximum compressed bytes of one read, unless the first job alone is larger. Limits memory during a backlog. */
const MAX_READ_BYTES = 1024 * 1024;
/** A server without an answer for this time counts as lost. */
const QUERY_TIMEOUT_MS = 10_000;

/** The settings of every session, and why. */
const SESSION_SETTINGS = [
  // A crash of the server may undo an acknowledgement, and the batch is redelivered. Consumers allow that. Waiting for
  // the disk would cost a flush for each batch.
  'SET synchronous_commit = off',
  // `read` must use the index order, whatever the statistics of a table that fills and empties all day say: sorting a
  // backlog at each read took 70 ms at 20,000 jobs.
  'SET enable_bitmapscan = off',
  'SET enable_seqscan = off',
  // A machine that disappears without closing its connections loses its locks after 5 + 3 × 2 s. The default is hours.
  // (No effect on unix sockets, which need none.)
  'SET tcp_keepalives_idle = 5',
  'SET tcp_keepalives_interval = 2',
  'SET tcp_keepalives_count = 3',
].join(';');

export interface SessionOptions {
  url: string;
  applicationName: string;
  schema: string;
  /** The LISTEN channel on which pg-boss announces new jobs. */
  channel: string;
  /** Called with the queue that has new jobs, or (`released`) no consumer any more. */
  onNews: (queue: string, released: boolean) => void;
  onLost: () => void;
}

/** A waiting job, as read. */
export interface WaitingJob {
  id: string;
  data: unknown;
}

const RELEASED = ' released';

/**
 * The one connection on which a process consumes. It listens, holds the locks that make this process the only consumer
 * of a queue, and reads and acknowledges. One session on purpose: a process that has lost the lock can no longer
 * acknowledge, and when a process dies the server frees its locks immediately.
 * open → (lock → read, acknowledge … → unlock)* → close, or `lost` at any time, which is final: open another.
 */
export class ConsumerSession implements Db {
  private ended = false;
  private established = false;
  /** Groups share the session. It runs their statements one after the other. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly held = new Set<string>();

  private constructor(
    private readonly client: Client,
    private readonly options: SessionOptions,
  ) {}

  static async open(options: SessionOptions): Promise<ConsumerSession> {
    const client = new Client({ ...(connectionConfig(options) as ClientConfig), query_timeout: QUERY_TIMEOUT_MS });
    const session = new ConsumerSession(client, options);
    client.on('error', () => session.drop());
    client.on('end', () => session.drop());
    client.on('notification', ({ payload = '' }) => {
      const released = payload.endsWith(RELEASED);
      options.onNews(released ? payload.slice(0, -RELEASED.length) : payload, released);
    });
    try {
      await client.connect();
      await client.query(`LISTEN "${options.channel}"`);
      await client.query(SESSION_SETTINGS);
      session.established = true;
    } catch (error) {
      session.drop();
      throw error;
    }
    return session;
  }

  get lost(): boolean {
    return this.ended;
  }

  /** Becomes the queue's only consumer among all processes. False: another process is. */
  async tryLock(queue: string): Promise<boolean> {
    if (this.held.has(queue)) return true;
    const { rows } = await this.query<{ locked: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked',
      [this.lockName(queue)],
    );
    if (rows[0]?.locked) this.held.add(queue);
    return this.held.has(queue);
  }

  /** Releases the queue and notifies waiting processes. */
  async unlock(queue: string): Promise<void> {
    if (!this.held.delete(queue)) return;
    await this.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [this.lockName(queue)]);
    await this.query('SELECT pg_notify($1, $2)', [this.options.channel, queue + RELEASED]);
  }

  /**
   * Reads the next waiting jobs in publication order: by their transaction's time on the server, and by id within one
   * call. WITH TIES, because the jobs of a call must be complete before they can be ordered.
   * `PgBoss.fetch` is not used. It leaves the order within a call open, and marks each job as taken, which is another
   * write and needs a repair after a crash. The lock makes that unnecessary.
   */
  async read(queue: string): Promise<WaitingJob[]> {
    const { rows } = await this.query<WaitingJob>({
      name: 'read',
      text: `
        SELECT id, data FROM (
          SELECT id, data, created_on,
            sum(pg_column_size(data)) OVER (ORDER BY created_on, id) - pg_column_size(data) AS bytes_before
          FROM (
            SELECT id, data, created_on FROM ${this.options.schema}.job
            WHERE name = $1 AND state < 'active' AND NOT blocked
            ORDER BY priority DESC, created_on FETCH FIRST ${MAX_BATCH_MESSAGES} ROWS WITH TIES
          ) AS waiting
        ) AS measured
        WHERE bytes_before < ${MAX_READ_BYTES} ORDER BY created_on, id`,
      values: [queue],
    });
    return rows;
  }

  /** For calls of pg-boss that belong to this session: `{ db: session }`. */
  async executeSql(text: string, values: unknown[] = []): Promise<{ rows: unknown[] }> {
    return this.query(text, values);
  }

  async close(): Promise<void> {
    this.ended = true;
    await this.client.end();
  }

  /**
   * Ends the session at once, with its locks, and notifies the consumers. `open` itself reports a session that was
   * never established.
   */
  drop(): void {
    if (this.ended) return;
    this.ended = true;
    if (this.established) this.options.onLost();
    // After an error on the socket this only cleans up; there is nothing to report.
    this.client.end().catch(() => {});
  }

  private query<R extends QueryResultRow>(query: string | QueryConfig, values?: unknown[]): Promise<QueryResult<R>> {
    const result = this.last.then(() => this.client.query<R>(query, values));
    this.last = result.catch(() => {});
    return result;
  }

  private lockName(queue: string): string {
    return `tollgate-messages ${this.options.schema}.${queue}`;
  }
}
