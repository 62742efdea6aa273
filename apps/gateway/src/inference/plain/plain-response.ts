import type { InferenceKind } from '@tollgate/contracts';
import { toWire } from '../../upstream/wire/json-text';
import { withoutEmptyUnknown } from '../../upstream/wire/output-text';
import { saysError } from '../../upstream/wire/reported-error';
import { readUsage, type ReportedUsage } from '../../upstream/wire/usage-field';
import { type Member, membersOf } from './json-members';

/** A backend's plain answer. */
export interface PlainResponse {
  /** `choices`, or `data` of embeddings. */
  content: Record<string, unknown>[];
  /** `content` as the backend wrote it, one character a byte. */
  contentJson: string;
  usage: ReportedUsage;
}

/**
 * No honest number has this many digits. They could carry output, so such JSON is serialised again, which shortens
 * them.
 */
const LONG_NUMBER = /[\d.]{64}/;

/** Some servers begin an answer with it. It is not JSON. */
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Parses a backend's answer. Null if the answer does not fit this kind of request, or reports an error. */
export function readPlainResponse(kind: InferenceKind, answer: Buffer): PlainResponse | null {
  const hasMark = answer.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const body = hasMark ? answer.subarray(BYTE_ORDER_MARK.length) : answer;
  const json = body.toString('latin1');
  let members: Member[];
  let parsed: unknown;
  try {
    // First, as it refuses an answer that is nested too deeply, or has too many objects.
    members = membersOf(json);
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
  if (typeof parsed !== 'object' || parsed === null) return null;
  const source = parsed as Record<string, unknown>;
  const field = kind === 'embedding' ? 'data' : 'choices';
  const items = source[field];
  if (saysError(source['error'])) return null;
  if (!areObjects(items) || items.length === 0) return null;
  // If a member is there twice, the last one counts, as in JSON.parse.
  const { valueStart, end, names } = members.findLast(({ name }) => name === field)!;
  const contentJson = json.slice(valueStart, end);
  const usage = readUsage(source['usage']);
  // Vectors are long and have no output to count.
  if (kind === 'embedding') return { content: items, contentJson, usage };
  const content = items.map(withoutEmptyUnknown);
  // The backend's JSON is sent only if `content` has all of it. Otherwise duplicate members, empty unknown members or
  // endless digits would go out uncounted.
  const isAllCounted =
    content.every((choice, i) => choice === items[i]) && names === membersIn(content) && !LONG_NUMBER.test(contentJson);
  return { content, contentJson: isAllCounted ? contentJson : toWire(content), usage };
}

/**
 * Encodes vectors that came as numbers as base64 of little-endian float32. Not every backend knows `encoding_format`,
 * and a client that asked for base64 would decode numbers to nothing.
 */
export function encodeVectors(response: PlainResponse): void {
  let changed = false;
  for (const item of response.content) {
    const vector = item['embedding'];
    if (!Array.isArray(vector)) continue;
    const encoded = Buffer.alloc(vector.length * Float32Array.BYTES_PER_ELEMENT);
    // `Number` would throw for an object that has a member `valueOf` and one `toString`.
    const numbers = vector.map((value) => (typeof value === 'object' && value !== null ? NaN : Number(value)));
    numbers.forEach((value, i) => encoded.writeFloatLE(value, i * Float32Array.BYTES_PER_ELEMENT));
    item['embedding'] = encoded.toString('base64');
    changed = true;
  }
  if (changed) response.contentJson = toWire(response.content);
}

/** Whether each choice of a chat has a message, without which official clients fail. */
export function haveMessages(choices: readonly Record<string, unknown>[]): boolean {
  return areObjects(choices.map((choice) => choice['message']));
}

/** Whether there is a vector for each of the inputs, as numbers or as base64. */
export function haveVectors(data: readonly Record<string, unknown>[], inputs: number): boolean {
  const isVector = (value: unknown) => (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
  return data.length >= inputs && data.every((item) => isVector(item['embedding']));
}

function areObjects(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null);
}

/** The number of members of all objects in a value. */
function membersIn(root: unknown): number {
  const open = [root];
  let members = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
    if (inner !== value) members += inner.length;
    for (let i = 0; i < inner.length; i += 1) open.push(inner[i]);
  }
  return members;
}

/**
 * The client's answer without its end, which has the usage: one character a byte, or bytes with room behind them.
 * Only the generated content comes from the backend, unchanged.
 */
export type BegunResponse = string | { bytes: Buffer; used: number };

/** A longer usage is possible: then the answer is copied. */
const USAGE_ROOM_BYTES = 8 * 1024;

export function beginPlainResponse(
  kind: InferenceKind,
  { contentJson }: PlainResponse,
  { id, object, createdSeconds, model }: { id: string; object: string; createdSeconds: number; model: string },
): string {
  const head = kind === 'embedding' ? { object, model } : { id, object, created: createdSeconds, model };
  const field = kind === 'embedding' ? 'data' : 'choices';
  return `${toWire(head).slice(0, -1)},"${field}":${contentJson}`;
}

/** In a separate buffer, which can be transferred between threads. */
export function toBytes(begun: string): { bytes: Buffer; used: number } {
  const bytes = Buffer.allocUnsafeSlow(begun.length + USAGE_ROOM_BYTES);
  return { bytes, used: bytes.write(begun, 'latin1') };
}

/** Completes the answer, once: it may use the room behind the bytes, because a copy of 25 MB takes 10 ms. */
export function endPlainResponse(begun: BegunResponse, usage: Record<string, unknown>): Buffer {
  const end = `,"usage":${toWire(usage)}}`;
  if (typeof begun === 'string') return Buffer.from(begun + end, 'latin1');
  const { bytes, used } = begun;
  const length = used + end.length;
  if (length > bytes.length) return Buffer.concat([bytes.subarray(0, used), Buffer.from(end, 'latin1')]);
  bytes.write(end, used, 'latin1');
  return bytes.subarray(0, length);
}
