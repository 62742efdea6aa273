import { TOPICS, type Topic } from '@tollgate/contracts';
import { StartError } from '@tollgate/runtime';
import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { KafkaConnection } from '../client/connection';
import { Publisher } from '../publish/publisher';
import { readTopic } from './read-topic';
import { Names } from '../admin/topic-plan';
import type { OutgoingMessage } from '../publish/topic-publisher';
import { partitionsOf, type TopicsOptions } from '../admin/apply-topics';

/** The maximum bytes of letters in memory at the same time. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const MAX_REPLAYED_TOGETHER = 10_000;

/** A message that a group quarantined as unreadable or forged, with its origin. */
export interface DeadLetter {
  topic: Topic;
  group: string;
  partition: number;
  offset: string;
  /** The position in a record that several messages share. Without it, the letter is the whole record. */
  index?: number;
  reason: string;
  /** The time of the quarantine: ISO 8601 UTC. */
  at: string;
  /** The value as delivered; null if there was none. */
  key: Buffer | null;
  value: Buffer | null;
  /**
   * The headers as delivered, with the signature. A replayed message is as genuine, or as forged, as before. A message
   * from a shared record has its own signature (record-reader.ts).
   */
  headers: IHeaders;
}

const HEADER = {
  reason: 'tollgate-reason',
  group: 'tollgate-group',
  partition: 'tollgate-origin-partition',
  offset: 'tollgate-origin-offset',
  index: 'tollgate-origin-index',
  at: 'tollgate-at',
  key: 'tollgate-key',
  /** An empty value stands for none: in a compacted topic, a null value means "delete what has this key". */
  noValue: 'tollgate-no-value',
} as const;
/** The prefix of the message's own headers. */
const OWN_HEADER = 'own.';

/**
 * The record of a dead topic. Its key is the origin, so a message that is quarantined again replaces itself, and a
 * replayed one can be removed.
 */
export function toRecord(letter: DeadLetter): OutgoingMessage {
  const { group, partition, offset, index, reason, at, key, value } = letter;
  const headers: IHeaders = {
    ...renamed(writable(letter.headers), (name) => OWN_HEADER + name),
    [HEADER.reason]: reason,
    [HEADER.group]: group,
    [HEADER.partition]: String(partition),
    [HEADER.offset]: offset,
    [HEADER.at]: at,
  };
  if (index !== undefined) headers[HEADER.index] = String(index);
  if (key) headers[HEADER.key] = key;
  if (!value) headers[HEADER.noValue] = '1';
  return { key: originOf(letter), value: value ?? Buffer.alloc(0), headers };
}

/**
 * The headers as kafkajs can write them. It reads a header without a value as null and cannot write it, so such a
 * header gets an empty value: its message stays as forged as it was. It reads a header with the name of a member of
 * every object, such as `constructor`, as if that member came first, and cannot write that either.
 */
function writable(headers: IHeaders): IHeaders {
  const bytes = (value: unknown) => (value === null ? Buffer.alloc(0) : value) as Buffer | string;
  const isText = (value: unknown) => Buffer.isBuffer(value) || typeof value === 'string';
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.map(bytes).filter(isText) : bytes(value),
    ]),
  );
}

/** A quarantined letter without its content: some 200 bytes of memory, so that even a million can be listed. */
interface Heading {
  topic: Topic;
  origin: string;
  partition: number;
  at: string;
  bytes: number;
}

/**
 * The messages of a topic, or of all topics, that were quarantined and not replayed, oldest first, and the number of
 * further ones. Returns at most `limit` letters, and at most MAX_HELD_BYTES of them. Reads the topics twice, because
 * only their end shows which letters were removed.
 */
export async function listDead(
  connection: KafkaConnection,
  { topic, limit = 1_000, topics = TOPICS, topicPrefix = '' }: TopicsOptions & { topic?: Topic; limit?: number } = {},
): Promise<{ letters: DeadLetter[]; left: number }> {
  const names = new Names(topicPrefix);
  const all: Heading[] = [];
  for (const each of topic ? [topic] : (Object.keys(topics) as Topic[]))
    for (const heading of await headingsOf(connection, each, names)) all.push(heading);
  all.sort(byAge);
  const chosen = firstPart(all, limit);
  const letters: DeadLetter[] = [];
  for (const each of new Set(chosen.map((heading) => heading.topic)))
    letters.push(...(await readLetters(connection, each, chosen, names)));
  return { letters: letters.sort(byAge), left: all.length - chosen.length };
}

/**
 * Replays the letters of a topic with these origins, or all that are quarantined at the time of the call. Returns the
 * origins of the replayed letters. If a named origin does not exist, it replays nothing and returns the missing ones.
 */
export async function replayTopic(
  connection: KafkaConnection,
  topic: Topic,
  origins: readonly string[] | 'all',
  options: TopicsOptions = {},
): Promise<{ replayed: string[]; missing: string[] }> {
  const names = new Names(options.topicPrefix ?? '');
  const all = (await headingsOf(connection, topic, names)).sort(byAge);
  const wanted = new Set(origins);
  const chosen = origins === 'all' ? all : all.filter(({ origin }) => wanted.has(origin));
  for (const { origin } of chosen) wanted.delete(origin);
  if (origins !== 'all' && wanted.size > 0) return { replayed: [], missing: [...wanted] };
  await assertPartitions(connection, chosen, names);
  for (let rest = chosen; rest.length > 0;) {
    const part = firstPart(rest, MAX_REPLAYED_TOGETHER);
    await replayDead(connection, await readLetters(connection, topic, part, names), options);
    rest = rest.slice(part.length);
  }
  return { replayed: chosen.map(({ origin }) => origin), missing: [] };
}

/**
 * Publishes the letters to their original topics and partitions again, each as its own record, and then removes
 * them from the dead topic. All groups of the topic get them, behind the existing messages: the ids inside make repeats
 * and late messages harmless. Letters that are still unreadable are quarantined again. Rejects before anything is
 * published when a topic lacks the partition of one of its letters, because it was recreated with fewer.
 */
export async function replayDead(
  connection: KafkaConnection,
  letters: readonly DeadLetter[],
  { topicPrefix = '' }: TopicsOptions = {},
): Promise<void> {
  const names = new Names(topicPrefix);
  await assertPartitions(connection, letters, names);
  const publisher = new Publisher(connection);
  try {
    for (const topic of new Set(letters.map((letter) => letter.topic))) {
      const own = letters.filter((letter) => letter.topic === topic);
      const messages = own.map(({ key, partition, value, headers }) => ({ key, partition, value, headers }));
      await publisher.send({ topic: names.topic(topic), messages });
      const taken = own.map((letter) => ({ key: originOf(letter), value: null }));
      await publisher.send({ topic: names.dead(topic), messages: taken });
    }
  } finally {
    await publisher.close();
  }
}

async function headingsOf(connection: KafkaConnection, topic: Topic, names: Names): Promise<Heading[]> {
  const byOrigin = new Map<string, Heading>();
  await readTopic(connection, names.dead(topic), (record) => {
    const origin = record.key?.toString() ?? '';
    byOrigin.delete(origin);
    if (!record.value) return;
    const { partition, at } = fromRecord(topic, record);
    byOrigin.set(origin, { topic, origin, partition, at, bytes: record.value.length });
  });
  return [...byOrigin.values()];
}

/** The headings of all these letters, ordered by age. */
async function readLetters(
  connection: KafkaConnection,
  topic: Topic,
  chosen: readonly Heading[],
  names: Names,
): Promise<DeadLetter[]> {
  const wanted = new Set(chosen.filter((heading) => heading.topic === topic).map(({ origin }) => origin));
  const byOrigin = new Map<string, DeadLetter>();
  await readTopic(connection, names.dead(topic), (record) => {
    const origin = record.key?.toString() ?? '';
    if (!wanted.has(origin)) return;
    byOrigin.delete(origin);
    if (record.value) byOrigin.set(origin, fromRecord(topic, record));
  });
  return [...byOrigin.values()].sort(byAge);
}

const byAge = (a: { at: string }, b: { at: string }): number => a.at.localeCompare(b.at);

/** The first `limit` letters, or as many as fit in memory together; at least one. */
function firstPart(headings: readonly Heading[], limit: number): Heading[] {
  let bytes = 0;
  const end = headings.findIndex((heading, index) => {
    bytes += heading.bytes;
    return index >= limit || (index > 0 && bytes > MAX_HELD_BYTES);
  });
  return end < 0 ? [...headings] : headings.slice(0, end);
}

/**
 * Without this check a letter could be lost: the client silently drops a message for a partition that the topic does
 * not have, and the letter would then be removed from the dead topic.
 */
async function assertPartitions(
  connection: KafkaConnection,
  letters: readonly Pick<DeadLetter, 'topic' | 'partition'>[],
  names: Names,
): Promise<void> {
  for (const topic of new Set(letters.map((letter) => letter.topic))) {
    const name = names.topic(topic);
    const partitions = await partitionsOf(connection, name);
    const homeless = letters.filter((letter) => letter.topic === topic && !partitions.has(letter.partition));
    if (homeless.length === 0) continue;
    const of = [...new Set(homeless.map(({ partition }) => partition))].sort((a, b) => a - b).join(', ');
    throw new StartError(
      `"${name}" has ${partitions.size} partitions, and ${homeless.length} messages to replay are of its partition ` +
        `${of}, which it does not have. Nothing was replayed: run "tollgate topics apply --grow-partitions"`,
    );
  }
}

/**
 * The identity of a dead letter within its topic: `<group>/<partition>/<offset>`, and `/<index>` if it shared its
 * record.
 */
export const originOf = ({ group, partition, offset, index }: DeadLetter): string =>
  [group, partition, offset, ...(index === undefined ? [] : [index])].join('/');

function fromRecord(topic: Topic, { headers = {}, value }: KafkaMessage): DeadLetter {
  const text = (name: string) => String(headers[name] ?? '');
  const key = headers[HEADER.key];
  return {
    topic,
    group: text(HEADER.group),
    partition: Number(text(HEADER.partition)),
    offset: text(HEADER.offset),
    ...(headers[HEADER.index] !== undefined && { index: Number(text(HEADER.index)) }),
    reason: text(HEADER.reason),
    at: text(HEADER.at),
    key: Buffer.isBuffer(key) ? key : null,
    value: headers[HEADER.noValue] ? null : value,
    headers: renamed(headers, (name) => (name.startsWith(OWN_HEADER) ? name.slice(OWN_HEADER.length) : undefined)),
  };
}

/** The headers whose names have the prefix. */
function renamed(headers: IHeaders, nameOf: (name: string) => string | undefined): IHeaders {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      const newName = nameOf(name);
      return newName === undefined ? [] : [[newName, value]];
    }),
  );
}
