import type { Admin } from 'kafkajs';
import type { ConsumedGroup } from './record-reader';
import type { Names } from '../admin/topic-plan';

/**
 * The number of records that a group has yet to handle, according to the brokers, with or without running consumers.
 * Several messages may share one: the brokers do not know how many.
 */
export async function groupLag(admin: Admin, { topic, group }: ConsumedGroup, names: Names): Promise<number> {
  const name = names.topic(topic);
  const [ends, [committed]] = await Promise.all([
    admin.fetchTopicOffsets(name),
    admin.fetchOffsets({ groupId: names.group(topic, group), topics: [name] }),
  ]);
  const offsets = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  return ends.reduce((sum, { partition, low, high }) => {
    // Without a committed offset, the group starts with the oldest message.
    const from = Math.max(offsets.get(partition) ?? -1, Number(low));
    return sum + Math.max(0, Number(high) - from);
  }, 0);
}
