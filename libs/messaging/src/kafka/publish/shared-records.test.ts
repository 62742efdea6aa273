import { MAX_BATCH_MESSAGES } from '../../messages';
import {
  MAX_RECORD_BYTES,
  MAX_RECORD_MESSAGES,
  packRecords,
  unpackRecord,
  type WrittenMessage,
} from './shared-records';
import { MAX_SEND_BYTES, type OutgoingMessage } from './topic-publisher';

const message = (key: string, n: number, bytes = 0): WrittenMessage => ({
  key,
  json: JSON.stringify({ key, n, more: 'x'.repeat(bytes) }),
});
const pack = (messages: readonly WrittenMessage[]) => packRecords(messages, MAX_RECORD_MESSAGES);
/** The texts in a record, as a consumer gets them. */
function textsOf({ value, headers = {} }: Pick<OutgoingMessage, 'value' | 'headers'>): string[] {
  const delivered = Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))]),
  );
  const unpacked = unpackRecord({ value, headers: delivered });
  if ('reason' in unpacked) throw new Error(unpacked.reason);
  return unpacked.values.map(String);
}

test('messages of one key share a record in their order, and those of other keys have records of their own', () => {
  const messages = [message('a', 1), message('b', 1), message('a', 2), message('c', 1), message('b', 2)];
  const records = pack(messages);
  expect(records.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
  for (const record of records)
    expect(textsOf(record)).toEqual(messages.filter(({ key }) => key === record.key).map(({ json }) => json));
});

test('a message alone in its record has the form of before: one envelope, and no header', () => {
  const [record, ...more] = pack([message('a', 1)]);
  expect(more).toEqual([]);
  expect(record).toEqual({ key: 'a', value: Buffer.from(message('a', 1).json) });
  expect(unpackRecord({ value: record!.value, headers: {} })).toEqual({ values: [record!.value], shared: false });
  expect(packRecords([message('a', 1), message('a', 2)], 1)).toHaveLength(2);
});

test('a record has at most 100 messages and 128 KiB, and the order of a key continues in the next one', () => {
  const many = Array.from({ length: 2 * MAX_RECORD_MESSAGES + 1 }, (_, n) => message('a', n));
  expect(pack(many).map((record) => textsOf(record).length)).toEqual([MAX_RECORD_MESSAGES, MAX_RECORD_MESSAGES, 1]);
  const large = Array.from({ length: 30 }, (_, n) => message(n % 2 ? 'a' : 'b', n, 20 * 1024));
  for (const messages of [many, large])
    for (const key of ['a', 'b']) {
      const of = pack(messages).filter((record) => record.key === key);
      expect(of.flatMap(textsOf)).toEqual(messages.filter((each) => each.key === key).map(({ json }) => json));
      for (const { value } of of) expect(value!.length).toBeLessThanOrEqual(MAX_RECORD_BYTES);
    }
  expect(4 * MAX_RECORD_BYTES).toBeLessThan(MAX_SEND_BYTES);
});

test('a message that is too large to share a record has one of its own, between those before and after it', () => {
  const messages = [message('a', 1), message('a', 2), message('a', 3, MAX_RECORD_BYTES), message('a', 4)];
  const records = pack(messages);
  expect(records.map((record) => textsOf(record).length)).toEqual([2, 1, 1]);
  expect(records.flatMap(textsOf)).toEqual(messages.map(({ json }) => json));
});

test.each<[string, string | string[], string, RegExp]>([
  ['fewer lines than it says', '3', 'a\nb', /not a record of 3/],
  ['more lines than it says', '2', 'a\nb\nc', /not a record of 2/],
  ['a line feed at its end', '2', 'a\nb\n', /not a record of 2/],
  ['no value', '2', '', /not a record of 2/],
  ['more messages than a batch may have', String(MAX_BATCH_MESSAGES + 1), 'a\nb', /at most 1000/],
  ['no message', '0', '', /at most 1000/],
  ['a word as its number', 'two', 'a\nb', /at most 1000/],
  ['two numbers', ['2', '2'], 'a\nb', /at most 1000/],
])('a record with %s is unreadable as a whole', (_, count, text, reason) => {
  const unpacked = unpackRecord({ value: Buffer.from(text), headers: { 'tollgate-messages': count } });
  expect(unpacked).toEqual({ reason: expect.stringMatching(reason) });
});

test('a part of a record keeps its bytes, even those that are not text', () => {
  const value = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('\n'), Buffer.from('{}')]);
  const unpacked = unpackRecord({ value, headers: { 'tollgate-messages': Buffer.from('2') } });
  expect(unpacked).toEqual({ values: [Buffer.from([0xff, 0xfe]), Buffer.from('{}')], shared: true });
});
