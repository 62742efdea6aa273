import { newId, TOPICS, type Service } from '@tollgate/contracts';
import type { KafkaMessage } from 'kafkajs';
import { MAX_BATCH_MESSAGES } from '../../messages';
import { originOf } from './dead-letters';
import { RecordReader, type Batch } from './record-reader';
import { MAX_RECORD_MESSAGES, packRecords } from '../publish/shared-records';
import { Signatures } from '../sign/signatures';
import { keysOf, TEST_IDENTITY } from '../sign/test-identity.fixture';
import type { OutgoingMessage } from '../publish/topic-publisher';

const TOPIC = 'test.charges';
const PARTITION = 3;
const group = { topic: 'charges' as const, group: 'billing', definition: TOPICS.charges, service: 'billing' as const };
const consumed = { ...group, handler: async () => {}, validate: undefined };
/** Has the keys of billing only, as the real consumer. */
const reader = new RecordReader(consumed, TOPIC, new Signatures(keysOf('billing')));
const everyone = new Signatures(TEST_IDENTITY);

const envelope = (n: number, v = 1) =>
  JSON.stringify({ id: newId('msg'), v, at: new Date().toISOString(), data: { tenantId: 'a', n } });
/** The record as delivered. */
function delivered({ key, value, headers = {} }: OutgoingMessage, offset = 0): KafkaMessage {
  const bytes = Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))]);
  return {
    ...{ key: Buffer.from(key!), value, headers: Object.fromEntries(bytes), offset: String(offset) },
    ...{ timestamp: '0', attributes: 0 },
  };
}
function recordOf(lines: readonly string[], offset = 0, from: Service = 'metering'): KafkaMessage {
  const [record] = packRecords(
    lines.map((json) => ({ key: 'a', json })),
    MAX_BATCH_MESSAGES,
  );
  return delivered(everyone.sign(TOPIC, record!, from, ['billing']), offset);
}
const read = (...records: KafkaMessage[]): Batch[] => [...reader.batches(records, PARTITION)];
const numbers = ({ messages }: Batch) => messages.map((data) => (data as { n: number }).n);
const reasons = ({ dead }: Batch) => dead.map(({ letter, forged }) => [originOf(letter), letter.reason, forged]);

test('an unreadable message in a record is quarantined alone, with its position; its neighbours are handled', () => {
  const lines = [envelope(0), 'hello', envelope(2), envelope(3, 999), '', envelope(5)];
  const [batch, ...more] = read(recordOf(lines, 17));
  expect(more).toEqual([]);
  expect(numbers(batch!)).toEqual([0, 2, 5]);
  expect(reasons(batch!)).toEqual([
    ['billing/3/17/1', 'not JSON', false],
    ['billing/3/17/3', 'version 999, but version 1 is read here', false],
    ['billing/3/17/4', 'not JSON', false],
  ]);
  expect(batch!.dead.map(({ letter }) => String(letter.value))).toEqual(['hello', lines[3], '']);
});

test('a message quarantined out of a record is authentic alone, for its consumer only, and unchanged only', () => {
  const [batch] = read(recordOf([envelope(0), envelope(1, 2), envelope(2)]));
  const { value, headers } = batch!.dead[0]!.letter;
  const alone = delivered({ key: 'a', value, headers }, 9);
  expect(reasons(read(alone)[0]!)).toEqual([['billing/3/9', expect.stringContaining('version 2'), false]]);
  const tomorrow = { ...consumed, definition: { ...TOPICS.charges, schemaVersion: 2 } };
  const [later] = [...new RecordReader(tomorrow, TOPIC, new Signatures(keysOf('billing'))).batches([alone], PARTITION)];
  expect(numbers(later!)).toEqual([1]);
  const altered = delivered({ key: 'a', value: Buffer.from(envelope(7)), headers });
  expect(reasons(read(altered)[0]!)).toEqual([['billing/3/0', expect.stringContaining('does not fit'), true]]);
  expect(Object.keys(headers)).toEqual(['tollgate-mac-billing']);
});

test('a forged record is quarantined as a whole', () => {
  const genuine = recordOf([envelope(0), envelope(1)]);
  const value = Buffer.from([envelope(0), envelope(9)].join('\n'));
  const forgeries: [KafkaMessage, string][] = [
    [{ ...genuine, value }, 'does not fit'],
    [{ ...genuine, headers: {} } as KafkaMessage, 'not signed for billing'],
    // One message less, and another number.
    [{ ...genuine, headers: { ...genuine.headers, 'tollgate-messages': Buffer.from('1') } } as KafkaMessage, 'not fit'],
    [recordOf([envelope(0), envelope(1)], 0, 'gateway'), 'signed by gateway'],
  ];
  for (const [record, reason] of forgeries) {
    const [batch] = read(record);
    expect(batch!.messages).toEqual([]);
    expect(reasons(batch!)).toEqual([['billing/3/0', expect.stringContaining(reason), true]]);
    expect(batch!.dead[0]!.letter).toMatchObject({ value: record.value, headers: record.headers });
  }
});

test('records of both forms are read in one batch, in any order', () => {
  const batches = read(recordOf([envelope(0)], 0), recordOf([envelope(1), envelope(2)], 1), recordOf([envelope(3)], 2));
  expect(batches.map(numbers)).toEqual([[0, 1, 2, 3]]);
  expect(batches[0]).toMatchObject({ firstOffset: '0', lastOffset: '2' });
});

test('a batch is whole records, of at most 1,000 messages together with the quarantined ones', () => {
  const sizes = [1, 999, 1, 600, 401, 599, 1_000, 2, ...Array.from({ length: 15 }, () => MAX_RECORD_MESSAGES)];
  let n = 0;
  const records = sizes.map((size, offset) =>
    recordOf(
      Array.from({ length: size }, () => (n++ % 7 ? envelope(n) : 'bad')),
      offset,
    ),
  );
  const batches = read(...records);
  const handled = batches.map(({ messages, dead }) => messages.length + dead.length);
  expect(handled.reduce((sum, size) => sum + size, 0)).toBe(n);
  expect(handled).toEqual([1_000, 601, 1_000, 1_000, 902, 600]);
  expect(batches.map(({ lastOffset }) => Number(lastOffset))).toEqual([1, 3, 5, 6, 16, 22]);
  expect(batches.flatMap(numbers)).toEqual([...batches.flatMap(numbers)].sort((a, b) => a - b));
});
