import type { Topic, TopicTypes } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import type { TransactionalPublisher } from '../messages';

/** How a service publishes in its own transactions. */
interface DirectPublisher {
  publisher: TransactionalPublisher;
  /** What it has published so far. Not emptied when announced: other transactions may not have committed yet. */
  topics: Set<Topic>;
  /** Messages were not started once, so there may be rows in the outbox. */
  hasStored: boolean;
}

const direct = new WeakMap<DataSource, DirectPublisher>();

/** From now on `enqueue` publishes at once. */
export function publishDirectly(dataSource: DataSource, publisher: TransactionalPublisher): void {
  direct.set(dataSource, { publisher, topics: new Set(), hasStored: false });
}

/** Tells consumers that transactions have committed. False: there may be rows in the outbox. */
export function announceDirectly(dataSource: DataSource): boolean {
  const own = direct.get(dataSource);
  if (!own) return false;
  own.publisher.announce(own.topics);
  return !own.hasStored;
}

/**
 * Publishes in this transaction, if and only if it commits, where the transport keeps its messages in the same
 * database. Call `OutboxRelay.wake` after the commit. False: it does not, and nothing was published or stored.
 */
export async function publishWithin<T extends Topic>(
  tx: EntityManager,
  topic: T,
  messages: readonly TopicTypes[T][],
): Promise<boolean> {
  const own = direct.get(tx.dataSource);
  if (!own) return false;
  if (await own.publisher.publish(tx, topic, messages)) {
    own.topics.add(topic);
    return true;
  }
  own.hasStored = true;
  return false;
}

/**
 * Stores messages in the `outbox` of the service's own schema, in the transaction of the change that they announce.
 * They are published if and only if it commits. Where the transport keeps its messages in the same database, they are
 * published by this very transaction, and the outbox stays empty. Call `OutboxRelay.wake` after the commit. A row that
 * can never be published goes to `outbox_refused` with the reason. Once the reason is fixed, an operator puts such rows
 * back: `INSERT INTO outbox (topic, data) SELECT topic, data FROM outbox_refused …`.
 */
export async function enqueue<T extends Topic>(
  tx: EntityManager,
  topic: T,
  messages: readonly TopicTypes[T][],
): Promise<void> {
  if (messages.length === 0 || (await publishWithin(tx, topic, messages))) return;
  await query(tx, 'INSERT INTO outbox (topic, data) SELECT $1, value FROM jsonb_array_elements($2::jsonb)', [
    topic,
    JSON.stringify(messages),
  ]);
}
