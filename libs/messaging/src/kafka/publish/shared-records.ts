import type { KafkaMessage } from 'kafkajs';
import { MAX_BATCH_MESSAGES } from '../../messages';
import type { OutgoingMessage } from './topic-publisher';

/** The maximum number of messages that share a record. */
export const MAX_RECORD_MESSAGES = 100;
/** The maximum size of a record that messages share. A larger message has its own record. */
export const MAX_RECORD_BYTES = 128 * 1024;
/** Says how many messages share the record. It is significant, so the signature covers it. */
const COUNT_HEADER = 'tollgate-messages';
const COUNT = /^[1-9][0-9]{0,3}$/;
const LINE_FEED = '\n'.charCodeAt(0);

/** A message as JSON, which has no line feeds. */
export interface WrittenMessage {
  key: string;
  json: string;
}

/**
 * The records of one publish call. Up to `limit` messages of the same key share one: a line of JSON each, in the order
 * of the call. A message alone in its record has no header, and looks as it did before records were shared.
 */
export function packRecords(messages: readonly WrittenMessage[], limit: number): OutgoingMessage[] {
  const records: { key: string; lines: string[]; bytes: number }[] = [];
  const open = new Map<string, (typeof records)[number]>();
  for (const { key, json } of messages) {
    const bytes = Buffer.byteLength(json) + 1;
    let record = open.get(key);
    if (!record || record.lines.length >= limit || record.bytes + bytes > MAX_RECORD_BYTES) {
      record = { key, lines: [], bytes: 0 };
      open.set(key, record);
      records.push(record);
    }
    record.lines.push(json);
    record.bytes += bytes;
  }
  return records.map(({ key, lines }) => ({
    key,
    value: Buffer.from(lines.join('\n')),
    ...(lines.length > 1 && { headers: { [COUNT_HEADER]: String(lines.length) } }),
  }));
}

/** The values of the messages of a record. `shared`: the record has the form of several, even if there is only one. */
export type Unpacked = { values: (Buffer | null)[]; shared: boolean } | { reason: string };

/** The reverse of `packRecords`. The record may be anything. */
export function unpackRecord({ value, headers }: Pick<KafkaMessage, 'value' | 'headers'>): Unpacked {
  const header = headers?.[COUNT_HEADER];
  if (header === undefined) return { values: [value], shared: false };
  const text = String(header);
  const count = COUNT.test(text) ? Number(text) : Infinity;
  // More would not fit into a batch.
  if (count > MAX_BATCH_MESSAGES) return { reason: `a record of at most ${MAX_BATCH_MESSAGES} messages is read here` };
  const values = linesOf(value ?? Buffer.alloc(0), count);
  return values ? { values, shared: true } : { reason: `not a record of ${count} messages` };
}

/** The lines of the text, or undefined if there are not `count`. */
function linesOf(text: Buffer, count: number): Buffer[] | undefined {
  const lines: Buffer[] = [];
  for (let start = 0; start <= text.length && lines.length <= count;) {
    const found = text.indexOf(LINE_FEED, start);
    const end = found < 0 ? text.length : found;
    lines.push(text.subarray(start, end));
    start = end + 1;
  }
  return lines.length === count ? lines : undefined;
}
