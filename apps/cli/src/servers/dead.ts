import { TOPICS, type Topic } from '@tollgate/contracts';
import { listDead, originOf, replayTopic, type DeadLetter } from '@tollgate/messaging';
import { Failure, UsageFailure } from '../command/failure';
import { withBrokers, type Brokers } from './kafka';
import type { Output } from '../command/output';
import { table } from '../command/table';

const UNREACHABLE = 'kafka_unavailable';
const MAX_REASON_CHARS = 100;
/** The largest number of letters in one listing. */
const MAX_LISTED_LETTERS = 10_000;

/** Lists quarantined messages, oldest first, of one topic or of all. */
export async function listLetters(brokers: Brokers, output: Output, topic?: string): Promise<void> {
  const { connection, topicPrefix } = brokers;
  const wanted = { topicPrefix, limit: MAX_LISTED_LETTERS, ...(topic !== undefined && { topic: topicOf(topic) }) };
  const { letters, left } = await withBrokers(UNREACHABLE, () => listDead(connection, wanted));
  const cells = letters.map((letter) => [
    letter.topic,
    originOf(letter),
    letter.at,
    textOf(letter.key) ?? '-',
    letter.reason.slice(0, MAX_REASON_CHARS),
  ]);
  output.answer(
    letters.map(shown),
    table(['TOPIC', 'ORIGIN', 'QUARANTINED', 'KEY', 'REASON'], cells, 'No message was quarantined.'),
  );
  if (left > 0) output.note(`These are the oldest ${letters.length}; ${left} more are quarantined.`);
}

/** Publishes letters of a topic again: those of these origins, or all of them. Publishes nothing if one is missing. */
export async function replayLetters(
  brokers: Brokers,
  output: Output,
  { topic, origins, all }: { topic: string; origins: readonly string[]; all: boolean },
): Promise<void> {
  if (all === origins.length > 0) throw new UsageFailure('Name the messages to replay by their ORIGIN, or give --all.');
  const { connection, topicPrefix } = brokers;
  const name = topicOf(topic);
  const { replayed, missing } = await withBrokers(UNREACHABLE, () =>
    replayTopic(connection, name, all ? 'all' : origins, { topicPrefix }),
  );
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

/** For scripts: bytes as base64, and also as text if they are text. */
function shown(letter: DeadLetter) {
  const { topic, group, partition, offset, index, reason, at, key, value } = letter;
  return {
    topic,
    origin: originOf(letter),
    group,
    partition,
    offset,
    index: index ?? null,
    at,
    reason,
    key: textOf(key),
    value: textOf(value),
    valueBase64: value?.toString('base64') ?? null,
  };
}

function textOf(bytes: Buffer | null): string | null {
  if (bytes === null) return null;
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : null;
}
