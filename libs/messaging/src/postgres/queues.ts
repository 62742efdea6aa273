import { randomUUID } from 'node:crypto';
import type { Envelope, Topic, TopicDefinition } from '@tollgate/contracts';
import type { Pool } from 'pg';
import type { Db, JobInsert, PgBoss } from 'pg-boss';
import { MAX_BATCH_MESSAGES } from '../messages';

export type Topics = Record<Topic, TopicDefinition>;

/** An unreadable message in the dead queue. */
export interface DeadMessage {
  reason: string;
  /** What was delivered, unchanged. */
  message: unknown;
}

/** The payload of one job. */
export interface MessageBatch {
  messages: Envelope[];
}

/** Ten years. A message waits for its group however long that takes, and pg-boss must never delete it as stale. */
const RETENTION_SECONDS = 10 * 365 * 24 * 3600;

export const queueName = (topic: Topic, group: string) => `${topic}.${group}`;
export const deadQueueName = (topic: Topic, group: string) => `${topic}.${group}.dead`;

/** Creates missing queues. Safe when several processes start at once. */
export async function createQueues(boss: PgBoss, topics: Topics): Promise<void> {
  const existing = new Set((await boss.getQueues()).map((queue) => queue.name));
  for (const [topic, { groups }] of Object.entries(topics) as [Topic, TopicDefinition][]) {
    for (const group of Object.keys(groups)) {
      const dead = deadQueueName(topic, group);
      if (!existing.has(dead)) await boss.createQueue(dead, { retentionSeconds: RETENTION_SECONDS });
      const queue = queueName(topic, group);
      if (!existing.has(queue)) await boss.createQueue(queue, { retentionSeconds: RETENTION_SECONDS, notify: true });
      // Makes pg-boss look up the queues now. Within the first publish, with all connections in transactions, that
      // look-up would wait forever.
      for (const name of [dead, queue]) await boss.insert(name, []);
    }
  }
}

/**
 * One publish call as jobs of at most MAX_BATCH_MESSAGES messages. A job is a batch because that is 2–3 times faster
 * to insert and read than single messages (README). All jobs of a call are inserted in one transaction and have the
 * same `created_on`. Their ascending ids keep their order.
 */
export function toJobs(envelopes: Envelope[]): JobInsert<MessageBatch>[] {
  const stem = randomUUID().slice(0, -12);
  const jobs: JobInsert<MessageBatch>[] = [];
  for (let start = 0; start < envelopes.length; start += MAX_BATCH_MESSAGES) {
    const id = stem + jobs.length.toString(16).padStart(12, '0');
    jobs.push({ id, data: { messages: envelopes.slice(start, start + MAX_BATCH_MESSAGES) } });
  }
  return jobs;
}

/** Inserts all jobs or throws. pg-boss alone silently skips a job whose id exists or whose queue is gone. */
export async function insertJobs(boss: PgBoss, queue: string, jobs: JobInsert[], db?: Db): Promise<void> {
  const ids = await boss.insert(queue, jobs, { returnId: true, ...(db && { db }) });
  if (ids?.length !== jobs.length)
    throw new Error(`${ids?.length ?? 0} of ${jobs.length} jobs were taken by "${queue}"`);
}

/**
 * The number of unacknowledged messages by queue. Queues without any are left out. A job that is not a batch counts as
 * one message.
 */
export async function countWaiting(
  pool: Pool,
  schema: string,
  queues: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; count: string }>(
    `SELECT name,
            sum(CASE jsonb_typeof(data->'messages')
                WHEN 'array' THEN jsonb_array_length(data->'messages') ELSE 1 END) AS count
     FROM ${schema}.job WHERE name = ANY ($1) AND state < 'active' AND NOT blocked GROUP BY name`,
    [queues],
  );
  return new Map(rows.map(({ name, count }) => [name, Number(count)]));
}
