import type { Topic, TopicTypes } from '@tollgate/contracts';
import type { EntityManager } from 'typeorm';

/** Puts messages into the outbox of this service's schema, in the caller's transaction. */
export async function enqueue<T extends Topic>(
  tx: EntityManager,
  topic: T,
  messages: readonly TopicTypes[T][],
): Promise<void> {
  await tx.query(`INSERT INTO outbox (topic, data) SELECT $1, value FROM jsonb_array_elements($2::jsonb)`, [
    topic,
    JSON.stringify(messages),
  ]);
}
