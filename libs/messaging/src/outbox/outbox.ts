import type { Topic, TopicTypes } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';

/**
 * Stores messages in the `outbox` of the service's own schema, in the transaction of the change that they announce.
 * They are published if and only if it commits. Call `OutboxRelay.wake` after the commit. A row that can never be
 * published goes to `outbox_refused` with the reason. Once the reason is fixed, an operator puts such rows back:
 * `INSERT INTO outbox (topic, data) SELECT topic, data FROM outbox_refused …`.
 */
export async function enqueue<T extends Topic>(
  tx: EntityManager,
  topic: T,
  messages: readonly TopicTypes[T][],
): Promise<void> {
  if (messages.length === 0) return;
  await query(tx, 'INSERT INTO outbox (topic, data) SELECT $1, value FROM jsonb_array_elements($2::jsonb)', [
    topic,
    JSON.stringify(messages),
  ]);
}
