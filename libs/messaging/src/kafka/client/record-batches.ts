import { createRequire } from 'node:module';

/** The parts of kafkajs's inner decoder that are used here. */
interface Decoder {
  buffer: Buffer;
  offset: number;
  canReadBytes(bytes: number): boolean;
  readBytes(): Buffer;
}

/** The parts of a decoded record that are used here. */
interface DecodedRecord {
  key: Buffer | null;
  value: Buffer | null;
  headers: Record<string, Buffer | null | (Buffer | null)[]>;
}

/** Decodes what one partition has in an answer, from the decoder of the answer. */
type DecodeMessages = (answer: Decoder) => Promise<(DecodedRecord | UndecodedBatch)[]>;

/** Where a batch has its fields, in bytes from its start. The header ends behind the number of its records. */
const [MAGIC_AT, LAST_OFFSET_DELTA_AT, RECORDS_AT, HEADER_BYTES] = [16, 23, 57, 61];
/** The format of batches since Kafka 0.11, and the only one since 4.0. */
const MAGIC = 2;
/** The bytes that give the length of what a partition has in an answer. */
const LENGTH_BYTES = 4;
/**
 * A batch of this system has 9,000 records at most: each counts at least 100 bytes of MAX_SEND_BYTES
 * (topic-publisher.ts). Foreign ones of 1 MiB may have 700,000. Those would take 5 s of this thread, which is almost
 * the session of the consumer, and the heap of a service.
 */
export const MAX_BATCH_RECORDS = 250_000;
/**
 * The maximum memory for the records of an answer, except for its last batch. An answer has at most 10 MiB, but may
 * decompress to a thousand times as much.
 */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** The approximate memory of a record, beside its contents. */
const RECORD_BYTES = 200;
/** The last offset that there can be. */
const MAX_OFFSET = String(2n ** 63n - 1n);
let patched = false;

/**
 * All that a partition has in an answer, if it begins with a batch that cannot be decoded. For kafkajs it is a message.
 * Its offset is above any that is fetched, so that kafkajs does not take it for one that was handled before.
 */
export class UndecodedBatch {
  readonly offset = MAX_OFFSET;
  readonly key = null;
  readonly value = null;
  readonly headers = {};
  readonly isControlRecord = false;
  readonly batchContext = { inTransaction: false, producerId: '-1' };

  constructor(
    readonly firstOffset: string,
    readonly lastOffset: string,
    readonly cause: unknown,
  ) {}
}

/**
 * Works around three defects of kafkajs 2.2.4. It passes the records of a batch as arguments of one call, so a batch
 * of 200,000 is a RangeError. It decompresses all of an answer at once, whatever its size. And a batch that cannot be
 * decoded fails the whole answer, for ever, so all partitions of the consumer stop. Here only the partition of the
 * batch stops, at an UndecodedBatch (supervised-consumer.ts).
 */
export function patchRecordBatches(): void {
  if (patched) return;
  patched = true;
  const kafkajs = createRequire(__filename);
  const path = kafkajs.resolve('kafkajs/src/protocol/requests/fetch/v4/decodeMessages');
  const original = kafkajs(path) as DecodeMessages;
  // kafkajs requires it when it first fetches.
  kafkajs.cache[path]!.exports = decodeMessagesOr(original, kafkajs);
}

function decodeMessagesOr(original: DecodeMessages, kafkajs: NodeJS.Require): DecodeMessages {
  const Decoder = kafkajs('kafkajs/src/protocol/decoder') as new (buffer: Buffer) => Decoder;
  const decodeBatch = kafkajs('kafkajs/src/protocol/recordBatch/v0/decoder') as (
    batches: Decoder,
  ) => Promise<{ records: DecodedRecord[] }>;
  /** The memory of the records of an answer, in bytes. */
  const sizes = new WeakMap<Decoder, number>();
  return async (answer) => {
    const bytes = answer.buffer.readInt32BE(answer.offset);
    const whole = bytes >= HEADER_BYTES && answer.canReadBytes(LENGTH_BYTES + bytes);
    if (!whole || answer.buffer[answer.offset + LENGTH_BYTES + MAGIC_AT] !== MAGIC) return original(answer);
    const batches = new Decoder(answer.readBytes());
    const records: DecodedRecord[] = [];
    let size = sizes.get(answer) ?? 0;
    // What is left over is fetched again, behind the last record that was handled.
    while (batches.canReadBytes(HEADER_BYTES) && size < MAX_ANSWER_BYTES) {
      const header = batches.buffer.subarray(batches.offset, batches.offset + HEADER_BYTES);
      try {
        checkCount(header);
        for (const record of (await decodeBatch(batches)).records) {
          records.push(record);
          size += sizeOf(record);
        }
      } catch (error) {
        // What precedes it is handled first. The next fetch begins with this batch.
        if (records.length > 0) break;
        // The last batch of an answer may be cut off.
        if ((error as Error).name === 'KafkaJSPartialMessageError') break;
        return [undecoded(header, error)];
      }
    }
    sizes.set(answer, size);
    return records;
  };
}

function checkCount(header: Buffer): void {
  const count = header.readInt32BE(RECORDS_AT);
  if (count > MAX_BATCH_RECORDS) throw new Error(`it has ${count} records, and at most ${MAX_BATCH_RECORDS} are read`);
}

function undecoded(header: Buffer, cause: unknown): UndecodedBatch {
  const first = header.readBigInt64BE(0);
  return new UndecodedBatch(String(first), String(first + BigInt(header.readInt32BE(LAST_OFFSET_DELTA_AT))), cause);
}

function sizeOf({ key, value, headers }: DecodedRecord): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0);
  for (const name in headers) for (const each of [headers[name]!].flat()) bytes += name.length + (each?.length ?? 0);
  return bytes;
}
