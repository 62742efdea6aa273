import { connectionConfig, queryWithin } from '@tollgate/postgres';
import { Client, type QueryConfig, type QueryResult, type QueryResultRow } from 'pg';
import { MAX_BATCH_MESSAGES } from '../messages';
import { channelOf } from './queues';

/** The maximum compressed bytes of one read, unless the first row alone is larger. Limits memory during a backlog. */
const MAX_READ_BYTES = 1024 * 1024;
/** A server without an answer for this time counts as lost. */
const QUERY_TIMEOUT_MS = 10_000;
/** The rows of the former version that are moved in one statement. */
const MAX_MOVED_ROWS = 200;

/** The settings of every session, and why. */
const SESSION_SETTINGS = [
  // A crash of the server may undo an acknowledgement, and the batch is redelivered. Consumers allow that. Waiting for
  // the disk would cost a flush for each batch.
  'SET synchronous_commit = off',
  // `read` must use the index order, whatever the statistics of a table that fills and empties all day say: sorting a
  // backlog at each read took 70 ms at 20,000 rows.
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
  /** The schema in which the former version keeps its messages. */
  formerSchema: string;
  /** Called with the queue that has new messages, or (`released`) no consumer any more. */
  onNews: (queue: string, released: boolean) => void;
  onLost: () => void;
}

/** A waiting batch, as read. */
export interface WaitingBatch {
  id: string;
  data: unknown;
}

/** What one read found, in the order of publication. */
export interface Waiting {
  batches: WaitingBatch[];
  /** Whether more was waiting than one read takes. */
  more: boolean;
}

/** An unreadable message. */
export interface DeadMessage {
  /** A UUID that is the same each time the message is quarantined. */
  id: string;
  reason: string;
  /** The waiting batch that has it. */
  batch: string;
  /** Its position there; null: the whole batch. */
  index: number | null;
}

const RELEASED = ' released';

/**
 * The one connection on which a process consumes. It listens, holds the locks that make this process the only consumer
 * of a queue, and reads and acknowledges. One session on purpose: a process that has lost the lock can no longer
 * acknowledge, and when a process dies the server frees its locks immediately.
 * open → (lock → read, acknowledge … → unlock)* → close, or `lost` at any time, which is final: open another.
 */
export class ConsumerSession {
  private ended = false;
  private established = false;
  /** Groups share the session. It runs their statements one after the other. */
  private last: Promise<unknown> = Promise.resolve();
  private readonly held = new Set<string>();
  private hasFormer = false;

  private constructor(
    private readonly client: Client,
    private readonly options: SessionOptions,
  ) {}

  static async open(options: SessionOptions): Promise<ConsumerSession> {
    const client = new Client(connectionConfig(options));
    const session = new ConsumerSession(client, options);
    client.on('error', () => session.drop());
    client.on('end', () => session.drop());
    client.on('notification', ({ payload = '' }) => {
      const released = payload.endsWith(RELEASED);
      options.onNews(released ? payload.slice(0, -RELEASED.length) : payload, released);
    });
    try {
      await client.connect();
      await session.query(`LISTEN "${channelOf(options.schema)}"`);
      await session.query(SESSION_SETTINGS);
      session.hasFormer = await session.findFormer();
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
    await this.query('SELECT pg_notify($1, $2)', [channelOf(this.options.schema), queue + RELEASED]);
  }

  /** Reads the next waiting batches in the order of their ids. */
  async read(queue: string): Promise<Waiting> {
    const { rows } = await this.query<WaitingBatch & { waiting: number }>({
      name: 'read',
      text: `
        SELECT id, data, waiting FROM (
          SELECT id, data, count(*) OVER ()::int AS waiting,
            sum(pg_column_size(data)) OVER (ORDER BY id) - pg_column_size(data) AS bytes_before
          FROM (
            SELECT id, data FROM ${this.options.schema}.batch WHERE queue = $1 ORDER BY id LIMIT ${MAX_BATCH_MESSAGES}
          ) AS next
        ) AS measured
        WHERE bytes_before < ${MAX_READ_BYTES} ORDER BY id`,
      values: [queue],
    });
    const waiting = rows[0]?.waiting ?? 0;
    return { batches: rows, more: rows.length < waiting || waiting === MAX_BATCH_MESSAGES };
  }

  /** Removes handled batches. */
  async acknowledge(queue: string, ids: readonly string[]): Promise<void> {
    await this.query({
      name: 'acknowledge',
      text: `DELETE FROM ${this.options.schema}.batch WHERE queue = $1 AND id = ANY ($2::bigint[])`,
      values: [queue, ids],
    });
  }

  /**
   * Keeps unreadable messages of waiting batches, unchanged. Those that are there already stay as they are. PostgreSQL
   * copies them, because it stores deeper nesting than JSON.stringify can write.
   */
  async quarantine(queue: string, dead: readonly DeadMessage[]): Promise<void> {
    await this.query(
      `INSERT INTO ${this.options.schema}.dead (queue, id, reason, message)
       SELECT queue, r.id, reason, CASE WHEN index IS NULL THEN data ELSE data->'messages'->index END
       FROM json_to_recordset($2::json) AS r (id uuid, reason text, batch bigint, index int)
         JOIN ${this.options.schema}.batch b ON (b.queue, b.id) = ($1, r.batch)
       ON CONFLICT DO NOTHING`,
      [queue, JSON.stringify(dead)],
    );
  }

  /**
   * Moves what the former version published to this queue, and what it quarantined. It kept them as jobs of pg-boss.
   * Its processes take the same lock, so none of them consumes the queue meanwhile; they may still publish to it.
   */
  async moveFormer(queue: string): Promise<void> {
    if (!this.hasFormer) return;
    const { schema, formerSchema } = this.options;
    const move = async (name: string, state: string, insert: string) => {
      const { rows } = await this.query<{ moved: number }>(
        `WITH job AS (
           DELETE FROM ${formerSchema}.job
           WHERE name = $1 AND id = ANY (ARRAY(
             SELECT id FROM ${formerSchema}.job WHERE name = $1 AND state ${state}
             ORDER BY created_on, id LIMIT ${MAX_MOVED_ROWS}))
           RETURNING id, created_on, data
         ), inserted AS (${insert} ON CONFLICT DO NOTHING)
         SELECT count(*)::int AS moved FROM job`,
        [name, ...(insert.includes('$2') ? [queue] : [])],
      );
      return rows[0]!.moved;
    };
    const batches = `
      INSERT INTO ${schema}.batch (queue, data)
      SELECT $1, coalesce(data, 'null') FROM job ORDER BY created_on, id`;
    const dead = `
      INSERT INTO ${schema}.dead (queue, id, created_at, reason, message)
      SELECT $2, id, created_on, coalesce(data->>'reason', ''), coalesce(data->'message', 'null')::json FROM job`;
    while ((await move(queue, `< 'active'`, batches)) === MAX_MOVED_ROWS);
    while ((await move(`${queue}.dead`, 'IS NOT NULL', dead)) === MAX_MOVED_ROWS);
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
    const config = typeof query === 'string' ? { text: query, ...(values && { values }) } : query;
    const result = this.last.then(() => queryWithin<R>(this.client, config, QUERY_TIMEOUT_MS));
    this.last = result.catch(() => {});
    return result;
  }

  private async findFormer(): Promise<boolean> {
    const { rows } = await this.query<{ is: boolean }>('SELECT to_regclass($1) IS NOT NULL AS is', [
      `${this.options.formerSchema}.job`,
    ]);
    return rows[0]!.is;
  }

  /** The name that the former version uses: of both versions together, one process consumes. */
  private lockName(queue: string): string {
    return `tollgate-messages ${this.options.formerSchema}.${queue}`;
  }
}
