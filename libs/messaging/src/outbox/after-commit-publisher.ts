import type { Topic, TopicTypes } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { failPoint, logger } from '@tollgate/runtime';
import type { DataSource, EntityManager } from 'typeorm';
import type { Messages } from '../messages';
import { enqueue, publishWithin } from './outbox';

/** How long after a failure messages go to the outbox: otherwise each batch would wait for the brokers, up to 10 s. */
const APART_MS = 60_000;

/**
 * Publishes the messages that the consumer of a batch makes from it, after its commit and before the batch is
 * acknowledged. Such messages need no outbox: if the process dies in between, the batch is delivered again. So its
 * consumer must make the same messages from a repeat, and the consumers of those messages must tolerate repeats.
 */
export class AfterCommitPublisher {
  private readonly failedAtMs = new Map<Topic, number>();

  constructor(
    private readonly dataSource: DataSource,
    private readonly messages: Pick<Messages, 'publish'>,
    private readonly options: { name: string },
  ) {}

  /**
   * Call it in the transaction. Returns the messages that `publish` must get after the commit: none if the transaction
   * itself publishes them, or stores them in the outbox because `publish` would probably fail.
   */
  async within<T extends Topic>(
    tx: EntityManager,
    topic: T,
    messages: readonly TopicTypes[T][],
  ): Promise<readonly TopicTypes[T][]> {
    if (messages.length === 0 || (await publishWithin(tx, topic, messages))) return [];
    if (!this.isAway(topic)) return messages;
    await enqueue(tx, topic, messages);
    return [];
  }

  /**
   * The messages are durable when it returns: published, or in the outbox, whose relay tries again and quarantines
   * those that can never be published.
   */
  async publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    if (messages.length === 0) return;
    failPoint('publishing', this.options.name);
    try {
      await this.messages.publish(topic, messages);
    } catch (error) {
      this.failedAtMs.set(topic, performance.now());
      logger('messaging').warn(
        { err: error, outbox: this.options.name, topic },
        'publishing a topic failed; the outbox has the messages',
      );
      await transaction(this.dataSource, (tx) => enqueue(tx, topic, messages));
    }
    failPoint('published', this.options.name);
  }

  private isAway(topic: Topic): boolean {
    return performance.now() < (this.failedAtMs.get(topic) ?? -Infinity) + APART_MS;
  }
}

/** `within` of the publisher. Without one nobody delivers the batch again, so the messages go to the outbox. */
export async function withinOrStored<T extends Topic>(
  publisher: AfterCommitPublisher | undefined,
  tx: EntityManager,
  topic: T,
  messages: readonly TopicTypes[T][],
): Promise<readonly TopicTypes[T][]> {
  if (publisher) return publisher.within(tx, topic, messages);
  await enqueue(tx, topic, messages);
  return [];
}
