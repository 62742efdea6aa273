import type { Topic, TopicTypes } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import { backoffMs, delayUntilAborted, failPoint, logger, WakeableDelay } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import { outboxAge, refusedRows } from '../message-metrics';
import { BATCHING_DELAY_MS, MAX_BATCH_MESSAGES, MessagesRefusedError, type Messages } from '../messages';
import { announceDirectly, publishDirectly } from './outbox';

/** The poll interval, for rows whose process died between commit and publication. */
const IDLE_POLL_MS = 1_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 1_000;
/**
 * The maximum time after its last failure that a topic keeps its own loop. Ends sooner when a message was
 * published. Another relay may be holding the topic's rows, and may put them back.
 */
const APART_MS = 60_000;
/** The maximum time that `stop` spends on publishing. Remaining rows are published after the next start. */
const DRAIN_TIMEOUT_MS = 5_000;

export interface OutboxRelayOptions {
  /** The outbox's name in metrics and logs: the service. */
  name: string;
}

interface OutboxRow {
  id: string;
  topic: Topic;
  data: unknown;
  created_at: Date;
}

/** A row that can never be published, and why. */
interface RefusedRow {
  row: OutboxRow;
  reason: string;
}

/** The outcome of one batch. */
interface Taken {
  /** The number of rows that were taken. */
  rows: number;
  /** The error of each topic that could not be published. Its rows are back in the outbox. */
  failed: Map<Topic, unknown>;
}

/**
 * Publishes what `enqueue` stored. Takes rows in the order of their ids, publishes them, and then commits their
 * removal, so each is published at least once.
 *
 * Any number of relays may work on one table: each takes rows that no other holds. Ids do not follow the order of
 * commits, so messages of one key may change places. Consumers de-duplicate by id and compare versions. A refused row
 * goes to `outbox_refused` and blocks no other; the other rows of its batch keep their order.
 *
 * Where the transport can publish in the transactions of the service, `enqueue` stores nothing. Then the relay only
 * publishes the rows of a former version, and those that an operator puts back.
 *
 * A topic that cannot be published gets its own loop until it can be, while the main loop publishes the others.
 */
export class OutboxRelay {
  private readonly wakeUp = new WakeableDelay();
  private readonly interrupt = new AbortController();
  /** The loops of the topics that currently cannot be published. */
  private readonly apart = new Map<Topic, Promise<unknown>>();
  /** The age in seconds of the oldest row of each loop. */
  private readonly ages = new Map<Topic | null, number>();
  private stopping = false;
  private done: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly messages: Messages,
    private readonly options: OutboxRelayOptions,
  ) {}

  start(): void {
    const { transactional } = this.messages;
    if (transactional?.services.some((service) => service === this.options.name))
      publishDirectly(this.dataSource, transactional);
    this.done = this.run();
  }

  /** There are new rows or messages. Call it after the commit. */
  wake(): void {
    if (!announceDirectly(this.dataSource)) this.wakeUp.wake();
  }

  /**
   * Publishes the remaining rows while that succeeds, for at most DRAIN_TIMEOUT_MS. Call it before `Messages.close` and
   * before the data source is destroyed.
   */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wakeUp.wake();
    this.interrupt.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      const beganMs = performance.now();
      if (!(await this.publishAll(null, () => this.stopping))) continue;
      await this.wakeUp.wait(IDLE_POLL_MS);
      const waitMs = BATCHING_DELAY_MS - (performance.now() - beganMs);
      if (waitMs > 0) await delayUntilAborted(waitMs, this.interrupt.signal);
    }
    await Promise.all(this.apart.values());
    const until = Date.now() + DRAIN_TIMEOUT_MS;
    await this.publishAll(null, () => Date.now() > until, 1);
  }

  /**
   * Publishes rows until none is left. A failed batch is retried with backoff.
   * @param only the topic of a separate loop; null: all topics without one
   * @param giveUp checked before each batch
   * @returns true when no row is left; false when `giveUp` says so, or after `maxFailures` failures in a row
   */
  private async publishAll(only: Topic | null, giveUp: () => boolean, maxFailures = Infinity): Promise<boolean> {
    let failedAtMs = performance.now();
    for (let failures = 0; !giveUp() && failures < maxFailures;) {
      try {
        const { rows, failed } = await this.publishBatch(only);
        const [first] = failed;
        if (first && (only !== null || this.stopping)) throw first[1];
        for (const [topic, error] of failed) this.setApart(topic, error);
        failures = 0;
        if (rows < MAX_BATCH_MESSAGES && failed.size === 0) {
          this.setAge(only, 0);
          if (only === null || rows > 0 || performance.now() - failedAtMs > APART_MS) return true;
          await delayUntilAborted(IDLE_POLL_MS, this.interrupt.signal);
        }
      } catch (error) {
        failedAtMs = performance.now();
        logger('messaging').warn(
          { err: error, outbox: this.options.name, ...(only !== null && { topic: only }) },
          'publishing the outbox failed; retrying',
        );
        const waitMs = backoffMs(failures++, RETRY_BASE_MS, MAX_RETRY_MS);
        await delayUntilAborted(waitMs, this.interrupt.signal);
      }
    }
    return false;
  }

  private setApart(topic: Topic, error: unknown): void {
    logger('messaging').warn(
      { err: error, outbox: this.options.name, topic },
      'publishing a topic failed; retrying it separately',
    );
    const loop = this.publishAll(topic, () => this.stopping).finally(() => {
      this.apart.delete(topic);
      this.ages.delete(topic);
      this.wakeUp.wake();
    });
    this.apart.set(topic, loop);
  }

  private async publishBatch(only: Topic | null): Promise<Taken> {
    const failed = new Map<Topic, unknown>();
    const set = only === null ? [...this.apart.keys()] : [only];
    const work = transaction(this.dataSource, async (tx) => {
      failed.clear();
      // 1. Take rows. Their removal is undone if this transaction does not commit.
      const rows = await query<OutboxRow>(
        tx,
        `DELETE FROM outbox
         WHERE id = ANY (ARRAY(SELECT id FROM outbox WHERE topic ${only === null ? '<> ALL' : '= ANY'} ($1::text[])
                               ORDER BY id LIMIT ${MAX_BATCH_MESSAGES} FOR UPDATE SKIP LOCKED))
         RETURNING id, topic, data, created_at`,
        [set],
      );
      rows.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
      const oldest = rows[0];
      if (oldest) this.setAge(only, (Date.now() - oldest.created_at.getTime()) / 1000);
      // 2. Publish: durable when it returns.
      if (rows.length > 0) failPoint('outbox-taken', this.options.name);
      const refused: RefusedRow[] = [];
      const topics = byTopic(rows);
      const publishing = [...topics].map(async ([topic, ofTopic]) => {
        try {
          refused.push(...(await this.publishRows(ofTopic)));
        } catch (error) {
          failed.set(topic, error);
        }
      });
      await Promise.all(publishing);
      // Nothing was published: the rollback puts all rows back.
      if (failed.size > 0 && failed.size === topics.size) throw failed.values().next().value;
      await putBack(
        tx,
        [...failed.keys()].flatMap((topic) => topics.get(topic)!),
      );
      await quarantine(tx, refused);
      if (rows.length > 0) failPoint('outbox-published', this.options.name);
      // 3. Commit.
      return { taken: rows.length, refused };
    });
    // The caller handles failed topics by name. Any other error is of the database.
    const done = await work.catch((error: unknown) => {
      if (failed.size === 0) throw error;
      return { taken: 0, refused: [] };
    });
    if (done.taken > 0) failPoint('outbox-emptied', this.options.name);
    for (const { row, reason } of done.refused) {
      refusedRows.inc({ outbox: this.options.name });
      logger('messaging').error(
        { outbox: this.options.name, id: row.id, topic: row.topic, reason },
        'a message can never be published and was quarantined: see outbox_refused',
      );
    }
    return { rows: done.taken, failed };
  }

  private setAge(of: Topic | null, seconds: number): void {
    this.ages.set(of, seconds);
    outboxAge.set({ outbox: this.options.name }, Math.max(...this.ages.values()));
  }

  /**
   * Publishes rows of one topic in their order and returns the refused ones. Sends all in one call, or one by one if
   * that call is refused.
   */
  private async publishRows(rows: readonly OutboxRow[]): Promise<RefusedRow[]> {
    try {
      await this.messages.publish(
        rows[0]!.topic,
        rows.map(({ data }) => data as TopicTypes[Topic]),
      );
      return [];
    } catch (error) {
      if (!(error instanceof MessagesRefusedError)) throw error;
      if (rows.length === 1) return [{ row: rows[0]!, reason: error.message }];
    }
    const refused: RefusedRow[] = [];
    for (const row of rows) refused.push(...(await this.publishRows([row])));
    return refused;
  }
}

function byTopic(rows: OutboxRow[]): Map<Topic, OutboxRow[]> {
  const topics = new Map<Topic, OutboxRow[]>();
  for (const row of rows) {
    const ofTopic = topics.get(row.topic) ?? [];
    ofTopic.push(row);
    topics.set(row.topic, ofTopic);
  }
  return topics;
}

/** Puts rows back with their ids and times. */
async function putBack(tx: EntityManager, rows: readonly OutboxRow[]): Promise<void> {
  if (rows.length === 0) return;
  await query(
    tx,
    `INSERT INTO outbox (id, topic, data, created_at) OVERRIDING SYSTEM VALUE
     SELECT id, topic, data, created_at
     FROM jsonb_to_recordset($1::jsonb) AS r (id bigint, topic text, data jsonb, created_at timestamptz)`,
    [JSON.stringify(rows)],
  );
}

async function quarantine(tx: EntityManager, refused: readonly RefusedRow[]): Promise<void> {
  for (const { row, reason } of refused) {
    await query(
      tx,
      'INSERT INTO outbox_refused (id, topic, data, created_at, refused_reason) VALUES ($1, $2, $3, $4, $5)',
      [row.id, row.topic, JSON.stringify(row.data), row.created_at, reason],
    );
  }
}
