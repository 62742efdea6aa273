import { withTimeout } from '@tollgate/runtime';
import { randomUUID } from 'node:crypto';
import type { KafkaMessage } from 'kafkajs';
import { withAdmin } from '../admin/apply-topics';
import type { KafkaConnection } from '../client/connection';
import { SupervisedConsumer } from '../client/supervised-consumer';

/** Only small topics are read as a whole. */
const READ_TIMEOUT_MS = 60_000;

/** Passes on everything that a topic holds at this moment, in order within each partition. */
export async function readTopic(
  connection: KafkaConnection,
  topic: string,
  onMessage: (message: KafkaMessage) => void,
): Promise<void> {
  const offsets = await withAdmin(connection, READ_TIMEOUT_MS, (admin) => admin.fetchTopicOffsets(topic));
  const ends = new Map<number, bigint>();
  for (const { partition, low, high } of offsets) if (BigInt(high) > BigInt(low)) ends.set(partition, BigInt(high));
  if (ends.size === 0) return;
  let finish: () => void = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const consumer = new SupervisedConsumer({
    connection,
    topic,
    fromBeginning: true,
    // A group of its own. It commits nothing, so it disappears when it is left.
    config: () => ({ groupId: `${topic}.reader.${randomUUID()}` }),
    run: () => ({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        const end = ends.get(batch.partition) ?? 0n;
        for (const message of batch.messages) if (BigInt(message.offset) < end) onMessage(message);
        if (BigInt(batch.lastOffset()) + 1n >= end) ends.delete(batch.partition);
        if (ends.size === 0) finish();
      },
    }),
  });
  consumer.start();
  try {
    await withTimeout(READ_TIMEOUT_MS, finished);
  } finally {
    await consumer.stop();
  }
}
