import { createRequire } from 'node:module';
import type { Batch as KafkaBatch, EachBatchPayload, KafkaMessage } from 'kafkajs';
import { createKafka, Sockets } from './connection';
import { MAX_BATCH_BYTES } from './gzip';
import { MAX_ANSWER_BYTES, MAX_BATCH_RECORDS, UndecodedBatch } from './record-batches';
import { SupervisedConsumer, type ConsumerSettings } from './supervised-consumer';

const CONNECTION = { brokers: ['127.0.0.1:1'], clientId: 'test' };
const TOPIC = 'charges';
const MIB = 1024 * 1024;
const [NONE, GZIP] = [0, 1];
/** Where a batch has its codec and the number of its records. */
const [CODEC_AT, RECORDS_AT] = [22, 57];
const SNAPPY = 2;

interface Encoder {
  buffer: Buffer;
  writeInt16(value: number): Encoder;
  writeInt32(value: number): Encoder;
  writeInt64(value: number): Encoder;
  writeString(value: string): Encoder;
  writeBytes(value: Buffer): Encoder;
  writeEncoder(value: Encoder): Encoder;
}
interface Partition {
  partition: number;
  messages: KafkaMessage[];
}

createKafka(CONNECTION, new Sockets());
const kafkajs = createRequire(__filename);
const Encoder = kafkajs('kafkajs/src/protocol/encoder') as new () => Encoder;
const encodeRecord = kafkajs('kafkajs/src/protocol/recordBatch/record/v0') as (record: object) => Encoder;
const { RecordBatch } = kafkajs('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch(batch: object): Promise<Encoder>;
};
const Batch = kafkajs('kafkajs/src/consumer/batch') as new (topic: string, from: string, data: object) => KafkaBatch;

/** A batch as kafkajs's producer writes it: from `firstOffset` on, `count` records of this value. */
async function batch(firstOffset: number, count: number, value: Buffer | null): Promise<Buffer> {
  const records = Array.from({ length: count }, (_, offsetDelta) => encodeRecord({ offsetDelta, value, headers: {} }));
  return (await RecordBatch({ firstOffset, compression: GZIP, lastOffsetDelta: count - 1, records })).buffer;
}

/** The partitions of a broker's answer to a fetch, the nth with the nth batches, decoded by kafkajs. */
async function fetched(...partitions: Buffer[][]): Promise<Partition[]> {
  const answer = new Encoder().writeInt32(0).writeInt16(0).writeInt32(0);
  answer.writeInt32(1).writeString(TOPIC).writeInt32(partitions.length);
  for (const [partition, batches] of partitions.entries()) {
    answer.writeInt32(partition).writeInt16(0).writeInt64(1_000_000).writeInt64(1_000_000).writeInt64(0);
    answer.writeInt32(-1).writeInt32(-1).writeBytes(Buffer.concat(batches));
  }
  const response = kafkajs('kafkajs/src/protocol/requests/fetch/v11/response') as {
    decode(data: Buffer): Promise<{ responses: { partitions: Partition[] }[] }>;
  };
  return (await response.decode(answer.buffer)).responses[0]!.partitions;
}

const good = () => batch(0, 3, Buffer.from('good'));
const tooLarge = (firstOffset = 0) => batch(firstOffset, 1, Buffer.alloc(MAX_BATCH_BYTES));
const offsets = ({ messages }: Partition) => messages.map(({ offset }) => offset);

test.each([
  ['gzip', GZIP],
  ['no codec', NONE],
])('a batch of 200,000 records with %s is decoded', async (_, compression) => {
  const record = encodeRecord({ offsetDelta: 0, value: null, headers: {} });
  const { buffer } = await RecordBatch({ compression, records: Array<Encoder>(200_000).fill(record) });
  const [partition] = await fetched([buffer]);
  expect(partition!.messages.length).toBe(200_000);
  expect(partition!.messages.at(-1)).toMatchObject({ offset: '0', value: null });
});

async function withCount(count: number): Promise<Buffer> {
  const changed = await good();
  changed.writeInt32BE(count, RECORDS_AT);
  return changed;
}

async function withCodec(codec: number): Promise<Buffer> {
  const changed = await good();
  changed.writeInt8(codec, CODEC_AT);
  return changed;
}

test.each<[string, () => Promise<Buffer>, RegExp]>([
  ['that becomes too large', tooLarge, /more than 9437184 bytes when decompressed/],
  ['of too many records', () => withCount(MAX_BATCH_RECORDS + 1), /250001 records, and at most 250000/],
  ['with fewer records than it says', () => withCount(4), /outside buffer bounds/],
  ['with a codec that kafkajs lacks', () => withCodec(SNAPPY), /not implemented/],
])('a batch %s stops its partition alone', async (_, bad, reason) => {
  const [before, stopped, after] = await fetched([await good()], [await bad(), await good()], [await good()]);
  for (const partition of [before!, after!]) expect(offsets(partition)).toEqual(['0', '1', '2']);
  expect(stopped!.messages).toHaveLength(1);
  const [undecoded] = stopped!.messages as unknown as UndecodedBatch[];
  expect(undecoded).toBeInstanceOf(UndecodedBatch);
  expect((undecoded!.cause as Error).message).toMatch(reason);
});

test('the records before a batch that cannot be decoded are handled first', async () => {
  const [partition] = await fetched([await good(), await tooLarge(3), await batch(4, 1, null)]);
  expect(offsets(partition!)).toEqual(['0', '1', '2']);
});

test('a batch that is cut off is left to the next fetch', async () => {
  const whole = await good();
  const [both, first] = await fetched([whole, whole.subarray(0, -1)], [whole.subarray(0, -1)]);
  expect([both!.messages.length, first!.messages.length]).toEqual([3, 0]);
});

test('an answer that becomes too large is decoded in part, and goes on behind that', async () => {
  const each = await batch(0, 1, Buffer.alloc(8 * MIB));
  const [first, second, third] = await fetched([each, each], [each, each, each], [each]);
  expect(MAX_ANSWER_BYTES).toBe(32 * MIB);
  expect([first, second, third].map((partition) => partition!.messages.length)).toEqual([2, 2, 0]);
});

/** A consumer's handling of one batch that was fetched from an offset: what it handled, resolved, counted, paused. */
async function consumed(partitionData: Partition, from: string, run: object = {}) {
  const seen = { handled: 0, resolved: [] as string[], undecoded: 0, paused: 0, resumed: 0 };
  const consumer = new SupervisedConsumer({
    ...{ connection: CONNECTION, topic: TOPIC, onUndecoded: () => seen.undecoded++ },
    run: () => ({ ...run, eachBatch: async () => void seen.handled++ }),
  } as unknown as ConsumerSettings);
  const guarded = consumer['guarded'](consumer['settings'].run());
  expect(guarded.eachBatchAutoResolve).toBe(false);
  await guarded.eachBatch!({
    batch: new Batch(TOPIC, from, partitionData),
    resolveOffset: (offset: string) => seen.resolved.push(offset),
    pause: () => (seen.paused++, () => seen.resumed++),
  } as unknown as EachBatchPayload);
  return seen;
}

test('a consumer pauses the partition of a batch that it cannot decode, and does not pass over it', async () => {
  const bad = await batch(7, 3, Buffer.alloc(MAX_BATCH_BYTES / 2));
  // Also if a part of the batch was handled before.
  for (const from of ['7', '9']) {
    const [partition] = await fetched([bad]);
    jest.useFakeTimers();
    const seen = await consumed(partition!, from);
    expect(seen).toEqual({ handled: 0, resolved: [], undecoded: 1, paused: 1, resumed: 0 });
    jest.advanceTimersByTime(5_000);
    expect(seen.resumed).toBe(1);
    jest.useRealTimers();
  }
});

test('the offsets of a batch that cannot be decoded are known', async () => {
  const [partition] = await fetched([await batch(7, 3, Buffer.alloc(MAX_BATCH_BYTES / 2))]);
  expect(partition!.messages).toMatchObject([{ firstOffset: '7', lastOffset: '9' }]);
});

test('a consumer resolves the batches that it handled, unless its handler does', async () => {
  const [partition] = await fetched([await good()]);
  expect(await consumed(partition!, '0')).toMatchObject({ handled: 1, resolved: ['2'], paused: 0 });
  expect(await consumed(partition!, '0', { eachBatchAutoResolve: false })).toMatchObject({ handled: 1, resolved: [] });
});
