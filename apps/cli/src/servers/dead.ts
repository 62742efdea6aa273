import { TOPICS, type Topic } from '@tollgate/contracts';
import { Failure, UsageFailure } from '../command/failure';
import type { Output } from '../command/output';
import { table } from '../command/table';

const MAX_REASON_CHARS = 100;
/** The largest number of letters in one listing. */
const MAX_LISTED_LETTERS = 10_000;

/** A quarantined message, for scripts: bytes as base64, and also as text if they are text. */
export interface ShownLetter {
  topic: Topic;
  origin: string;
  group: string;
  /** Its place in Kafka. In PostgreSQL it has none. */
  partition: number | null;
  offset: string | null;
  index: number | null;
  /** The time of the quarantine: ISO 8601 UTC. */
  at: string;
  reason: string;
  key: string | null;
  value: string | null;
  valueBase64: string | null;
}

/** Where the quarantined messages of a Tollgate are. Both methods throw Failure if it cannot be reached. */
export interface DeadStore {
  /** The oldest letters of the topic or of all, and the number of further ones. */
  list(topic: Topic | undefined, limit: number): Promise<{ letters: ShownLetter[]; left: number }>;
  /** Returns the origins of the replayed letters. Replays nothing if some are missing, and returns these. */
  replay(topic: Topic, origins: readonly string[] | 'all'): Promise<{ replayed: string[]; missing: string[] }>;
}

/** Lists quarantined messages, oldest first, of one topic or of all. */
export async function listLetters(store: DeadStore, output: Output, topic?: string): Promise<void> {
  const { letters, left } = await store.list(topic === undefined ? undefined : topicOf(topic), MAX_LISTED_LETTERS);
  const cells = letters.map(({ topic, origin, at, key, reason }) => [
    ...[topic, origin, at, key ?? '-'],
    reason.slice(0, MAX_REASON_CHARS),
  ]);
  output.answer(
    letters,
    table(['TOPIC', 'ORIGIN', 'QUARANTINED', 'KEY', 'REASON'], cells, 'No message was quarantined.'),
  );
  if (left > 0) output.note(`These are the oldest ${letters.length}; ${left} more are quarantined.`);
}

/** Publishes the letters of a topic with these origins again, or all. Publishes nothing if one is missing. */
export async function replayLetters(
  store: DeadStore,
  output: Output,
  { topic, origins, all }: { topic: string; origins: readonly string[]; all: boolean },
): Promise<void> {
  if (all === origins.length > 0) throw new UsageFailure('Name the messages to replay by their ORIGIN, or give --all.');
  const { replayed, missing } = await store.replay(topicOf(topic), all ? 'all' : origins);
  if (missing.length > 0) {
    throw new Failure(
      `No such message of ${topic} is quarantined: ${missing.join(', ')}. Nothing was replayed; see: tollgate ` +
        `dead list ${topic}`,
      'not_found',
    );
  }
  output.answer(
    { replayed },
    replayed.length === 0
      ? 'There is nothing to replay.'
      : `${replayed.length} published to ${topic} again. Any that still cannot be read will be quarantined again.`,
  );
}

function topicOf(name: string): Topic {
  if (Object.hasOwn(TOPICS, name)) return name as Topic;
  throw new UsageFailure(`There is no topic "${name}"; there are ${Object.keys(TOPICS).join(', ')}.`);
}
