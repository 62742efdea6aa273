import type { Topic, TopicTypes } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { failPoint, logger } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import { outboxAge, refusedRows } from '../message-metrics';
import { MAX_BATCH_MESSAGES, MessagesRefusedError, type Messages } from '../messages';
import { backoffMs, Signal } from '../signal';

/** A look without a wake: for rows whose process died between commit and publication. */
const IDLE_POLL_MS = 1_000;
const RETRY_BASE_MS = 50;
const MAX_RETRY_MS = 5_000;
/** Time that `stop` gives to what is there; the rest is published after the next start. */
const DRAIN_TIMEOUT_MS = 5_000;

export interface OutboxRelayOptions {
  /** Names the outbox in metrics and logs, e.g. the schema. */
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

/**
 * Publishes what `enqueue` stored: takes rows in the order of their ids, publishes them, and commits their removal after that; so each is published at least once.
 * Any number of relays may work on one table (each takes rows that no other has in hand), and a row's id is not its moment of commit: messages of one key
 * may therefore change places. A row that is refused goes to `outbox_refused` and blocks nobody; the others of its batch keep their order. Consumers de-duplicate by id and compare versions.
 */
export class OutboxRelay {
  private readonly news = new Signal();
  private readonly interrupt = new Signal();
  private stopping = false;
  private done: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly messages: Messages,
    private readonly options: OutboxRelayOptions,
  ) {}

  start(): void {
    this.done = this.run();
  }

  /** There are new rows: call after the commit. */
  wake(): void {
    this.news.wake();
  }

  /** Publishes what is there, for DRAIN_TIMEOUT_MS at the most and as long as it succeeds. Call it before `Messages.close` and before the data source is destroyed. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.news.wake();
    this.interrupt.wake();
    await this.done;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      if (await this.publishAll(() => this.stopping)) await this.news.wait(IDLE_POLL_MS);
    }
    const until = Date.now() + DRAIN_TIMEOUT_MS;
    await this.publishAll(() => Date.now() > until, 1);
  }

  /** True when the outbox is empty; false when told to give up, or after `maxFailures`. */
  private async publishAll(giveUp: () => boolean, maxFailures = Infinity): Promise<boolean> {
    for (let failures = 0; !giveUp() && failures < maxFailures;) {
      try {
        const published = await this.publishBatch();
        failures = 0;
        if (published < MAX_BATCH_MESSAGES) {
          outboxAge.set({ outbox: this.options.name }, 0);
          return true;
        }
      } catch (error) {
        logger('messaging').warn(
          { err: error, outbox: this.options.name },
          'the outbox could not be published and is tried again',
        );
        await this.interrupt.wait(backoffMs(failures++, RETRY_BASE_MS, MAX_RETRY_MS));
      }
    }
    return false;
  }

  /** How many rows it took. */
  private async publishBatch(): Promise<number> {
    const { taken, refused } = await transaction(this.dataSource, async (tx) => {
      // 1. Take rows: gone when this transaction commits, untouched when it does not.
      const [rows] = (await tx.query(
        `DELETE FROM outbox
         WHERE id = ANY (ARRAY(SELECT id FROM outbox ORDER BY id LIMIT ${MAX_BATCH_MESSAGES} FOR UPDATE SKIP LOCKED))
         RETURNING id, topic, data, created_at`,
      )) as [OutboxRow[], number];
      rows.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
      const oldest = rows[0];
      if (oldest) outboxAge.set({ outbox: this.options.name }, (Date.now() - oldest.created_at.getTime()) / 1000);
      // 2. Publish: durable when it returns.
      if (rows.length > 0) failPoint('outbox-taken', this.options.name);
      const refused: RefusedRow[] = [];
      for (const ofTopic of byTopic(rows)) refused.push(...(await this.publishRows(ofTopic)));
      await setAside(tx, refused);
      if (rows.length > 0) failPoint('outbox-published', this.options.name);
      // 3. Commit.
      return { taken: rows.length, refused };
    });
    if (taken > 0) failPoint('outbox-emptied', this.options.name);
    for (const { row, reason } of refused) {
      refusedRows.inc({ outbox: this.options.name });
      logger('messaging').error(
        { outbox: this.options.name, id: row.id, topic: row.topic, reason },
        'a message can never be published and was set aside: see outbox_refused',
      );
    }
    return taken;
  }

  /** Publishes rows of one topic in their order, and returns those that were refused: all in one call, or one by one when that call is refused. */
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

function byTopic(rows: OutboxRow[]): OutboxRow[][] {
  const topics = new Map<Topic, OutboxRow[]>();
  for (const row of rows) {
    const ofTopic = topics.get(row.topic) ?? [];
    ofTopic.push(row);
    topics.set(row.topic, ofTopic);
  }
  return [...topics.values()];
}

async function setAside(tx: EntityManager, refused: readonly RefusedRow[]): Promise<void> {
  for (const { row, reason } of refused) {
    await tx.query(
      'INSERT INTO outbox_refused (id, topic, data, created_at, refused_reason) VALUES ($1, $2, $3, $4, $5)',
      [row.id, row.topic, JSON.stringify(row.data), row.created_at, reason],
    );
  }
}
