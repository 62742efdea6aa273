import { listDead, originOf, replayTopic, type DeadLetter } from '@tollgate/messaging';
import type { DeadStore, ShownLetter } from './dead';
import { withBrokers, type Brokers } from './kafka';

const UNREACHABLE = 'kafka_unavailable';

/** The dead topics of the distributed form. */
export function kafkaDead({ connection, topicPrefix }: Brokers): DeadStore {
  return {
    async list(topic, limit) {
      const wanted = { topicPrefix, limit, ...(topic !== undefined && { topic }) };
      const { letters, left } = await withBrokers(UNREACHABLE, () => listDead(connection, wanted));
      return { letters: letters.map(shown), left };
    },
    replay: (topic, origins) =>
      withBrokers(UNREACHABLE, () => replayTopic(connection, topic, origins, { topicPrefix })),
  };
}

function shown(letter: DeadLetter): ShownLetter {
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
