import type { Admin } from 'kafkajs';
import type { ConsumedGroup } from './group-consumer';
import type { Names } from './topic-plan';

/**
 * How many messages of its topic a group has yet to handle, as the brokers know it: whoever consumes, and whether
 * anybody does.
 */
export async function groupLag(admin: Admin, { topic, group }: ConsumedGroup, names: Names): Promise<number> {
  const name = names.topic(topic);
  const [ends, [committed]] = await Promise.all([
    admin.fetchTopicOffsets(name),
    admin.fetchOffsets({ groupId: names.group(topic, group), topics: [name] }),
  ]);
  const offsets = new Map(committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  return ends.reduce((sum, { partition, low, high }) => {
    // Nothing committed yet: it begins with what is there.
    const from = Math.max(offsets.get(partition) ?? -1, Number(low));
    return sum + Math.max(0, Number(high) - from);
  }, 0);
}
