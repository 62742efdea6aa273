import type { Topic, TopicTypes } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';

/**
 * The outbox of a service, in the service's own schema, and the table for rows that can never be published, with the
 * reason. The service's migrations contain these statements verbatim. Once the reason is fixed, an operator puts such
 * rows back: `INSERT INTO outbox (topic, data) SELECT topic, data FROM outbox_refused …`.
 */
export const OUTBOX_TABLE_SQL = `\
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE outbox_refused (
  id bigint PRIMARY KEY,
  topic text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  refused_reason text NOT NULL,
  refused_at timestamptz NOT NULL DEFAULT now()
);
`;

/**
 * Stores messages in the transaction of the change that they announce. They are published if and only if it commits.
 * Call `OutboxRelay.wake` after the commit.
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
