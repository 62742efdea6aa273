import type { Topic, TopicTypes } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { outboxAge } from '../message-metrics';
import { MAX_BATCH_MESSAGES, type Messages } from '../messages';
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

/**
 * Publishes what `enqueue` stored: takes rows in the order of their ids, publishes them, and commits their removal after that; so each is published at least once.
 * Any number of relays may work on one table (each takes rows that no other has in hand), and a row's id is not its moment of commit: messages of one key
 * may therefore change places. Consumers de-duplicate by id and compare versions.
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

  private publishBatch(): Promise<number> {
    return transaction(this.dataSource, async (tx) => {
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
      for (const [topic, data] of byTopic(rows)) await this.messages.publish(topic, data);
      // 3. Commit.
      return rows.length;
    });
  }
}

function byTopic(rows: OutboxRow[]): Map<Topic, TopicTypes[Topic][]> {
  const topics = new Map<Topic, TopicTypes[Topic][]>();
  for (const { topic, data } of rows) {
    const messages = topics.get(topic) ?? [];
    messages.push(data as TopicTypes[Topic]);
    topics.set(topic, messages);
  }
  return topics;
}
