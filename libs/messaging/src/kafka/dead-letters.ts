import { TOPICS, type Topic } from '@tollgate/contracts';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { KafkaConnection } from './connection';
import { Publisher, type OutgoingMessage } from './publisher';
import { readTopic } from './read-topic';
import { Names } from './topic-plan';
import type { TopicsOptions } from './apply-topics';

/** A message that a group could not read, with where it came from. */
export interface DeadLetter {
  topic: Topic;
  group: string;
  partition: number;
  offset: string;
  reason: string;
  /** When it was set aside: ISO 8601 UTC. */
  at: string;
  /** As it was delivered; null when it was. */
  key: Buffer | null;
  value: Buffer | null;
}

const HEADER = {
  reason: 'tollgate-reason',
  group: 'tollgate-group',
  partition: 'tollgate-origin-partition',
  offset: 'tollgate-origin-offset',
  at: 'tollgate-at',
  key: 'tollgate-key',
  /** An empty value stands for none: in a compacted topic, no value means "delete what has this key". */
  noValue: 'tollgate-no-value',
} as const;

/** The record of a dead topic. Its key is the origin, so a message that is set aside again replaces itself, and one that was replayed can be taken out. */
export function toRecord(letter: DeadLetter): OutgoingMessage {
  const { group, partition, offset, reason, at, key, value } = letter;
  const headers: IHeaders = {
    [HEADER.reason]: reason,
    [HEADER.group]: group,
    [HEADER.partition]: String(partition),
    [HEADER.offset]: offset,
    [HEADER.at]: at,
  };
  if (key) headers[HEADER.key] = key;
  if (!value) headers[HEADER.noValue] = '1';
  return { key: originOf(letter), value: value ?? Buffer.alloc(0), headers };
}

/** The messages of a topic, or of all topics, that were set aside and not replayed; oldest first. `limit`: the most that are returned. */
export async function listDead(
  connection: KafkaConnection,
  { topic, limit = 1_000, topics = TOPICS, topicPrefix = '' }: TopicsOptions & { topic?: Topic; limit?: number } = {},
): Promise<DeadLetter[]> {
  const names = new Names(topicPrefix);
  const letters: DeadLetter[] = [];
  for (const each of topic ? [topic] : (Object.keys(topics) as Topic[])) {
    const byOrigin = new Map<string, DeadLetter>();
    await readTopic(connection, names.dead(each), (record) => {
      const origin = record.key?.toString() ?? '';
      if (record.value) byOrigin.set(origin, fromRecord(each, record));
      else byOrigin.delete(origin);
    });
    letters.push(...byOrigin.values());
  }
  return letters.sort((a, b) => a.at.localeCompare(b.at)).slice(0, limit);
}

/**
 * Publishes the letters to their topics again, as and where they were, and takes each out of the dead topic after that. All groups of the topic get them, behind what is there: handlers bear
 * repeats and late messages by the ids inside. What still cannot be read is set aside again.
 */
export async function replayDead(
  connection: KafkaConnection,
  letters: readonly DeadLetter[],
  { topicPrefix = '' }: TopicsOptions = {},
): Promise<void> {
  const names = new Names(topicPrefix);
  const publisher = new Publisher(connection);
  try {
    for (const letter of letters) {
      const { topic, key, partition, value } = letter;
      await publisher.send({ topic: names.topic(topic), messages: [{ key, partition, value }] });
      await publisher.send({ topic: names.dead(topic), messages: [{ key: originOf(letter), value: null }] });
    }
  } finally {
    await publisher.close();
  }
}

/** What tells a dead letter from the others of its topic: `<group>/<partition>/<offset>`. */
export const originOf = ({ group, partition, offset }: DeadLetter): string => `${group}/${partition}/${offset}`;

function fromRecord(topic: Topic, { headers = {}, value }: KafkaMessage): DeadLetter {
  const text = (name: string) => String(headers[name] ?? '');
  const key = headers[HEADER.key];
  return {
    topic,
    group: text(HEADER.group),
    partition: Number(text(HEADER.partition)),
    offset: text(HEADER.offset),
    reason: text(HEADER.reason),
    at: text(HEADER.at),
    key: Buffer.isBuffer(key) ? key : null,
    value: headers[HEADER.noValue] ? null : value,
  };
}
