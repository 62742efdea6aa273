import { createRequire } from 'node:module';
import type { IHeaders } from 'kafkajs';
import { sizeOf } from '../publish/topic-publisher';
import { toRecord } from './dead-letters';

/** What kafkajs does to a record on its way to a broker and back. It has no types for that. */
const kafkajs = createRequire(require.resolve('kafkajs'));
const encode = kafkajs('./src/protocol/recordBatch/record/v0') as (record: object) => { buffer: Buffer };
const decode = kafkajs('./src/protocol/recordBatch/record/v0/decoder') as Decode;
type Decode = (decoder: unknown, batch: object) => { headers: IHeaders };
const Decoder = kafkajs('./src/protocol/decoder') as new (bytes: Buffer) => { readVarInt(): number };

function delivered(record: Buffer): IHeaders {
  const decoder = new Decoder(record);
  // Its length.
  decoder.readVarInt();
  return decode(decoder, { firstOffset: '0', firstTimestamp: '0' }).headers;
}

/** A record with these headers, as another client writes it: kafkajs writes no header without a value. */
function foreign(headers: readonly Header[]): Buffer {
  const text = (value: string) => [value.length << 1, ...Buffer.from(value)];
  const pairs = headers.flatMap(([name, value]) => [...text(name), ...(value === null ? [1] : text(value))]);
  // Attributes, time, offset, key, value, headers. Numbers are doubled, and 1 is the length of nothing.
  const body = [0, 0, 0, ...text('a'), ...text('{}'), headers.length << 1, ...pairs];
  return Buffer.from([body.length << 1, ...body]);
}
type Header = readonly [name: string, value: string | null];

test.each<[string, Header[], string, string | string[]]>([
  ['a header without a value', [['trace', null]], 'trace', ''],
  [
    'a repeated header, once without a value',
    [
      ['trace', 'x'],
      ['trace', null],
    ],
    'trace',
    ['x', ''],
  ],
  ['a header named like a member of every object', [['constructor', 'x']], 'constructor', 'x'],
])('a message with %s can be quarantined', (_, sent, name, kept) => {
  const origin = { topic: 'charges' as const, group: 'billing', partition: 0, offset: '0', at: '', reason: 'forged' };
  const headers = delivered(foreign(sent));
  const record = toRecord({ ...origin, key: Buffer.from('a'), value: Buffer.from('{}'), headers });
  expect(sizeOf(record)).toBeGreaterThan(0);
  const own = delivered(encode(record).buffer)[`own.${name}`];
  expect(Array.isArray(own) ? own.map(String) : String(own)).toEqual(kept);
});
