import { randomFillSync } from 'node:crypto';

/** The kinds of id that Tollgate mints. */
export type IdPrefix = 'req' | 'key' | 'tok' | 'ten' | 'ent' | 'msg' | 'rec' | 'evt' | 'opr' | 'aud' | 'inv';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const RANDOM_BYTES = 16 * 256;
const pool = Buffer.alloc(RANDOM_BYTES);
let poolUsed = RANDOM_BYTES;
/** The bytes of the id that is being made. */
const fresh = Buffer.alloc(16);
/**
 * The most that new ids are ahead of the clock, when it was set back. Whoever reads a time range by its ids allows for
 * an hour (apps/metering/src/query/usage-export.ts).
 */
const MAX_AHEAD_MS = 30 * 60 * 1000;
let lastMs = 0;
let sequence = 0;

/**
 * A new id: the prefix and a UUIDv7 in lower-case Crockford base32: sortable by time, opaque, URL-safe (`req_01k9…`,
 * 26 characters after the prefix). Ids of one process ascend strictly, even within a millisecond: the 12 bits behind
 * the time count up, and when they are used up, the time moves on. Only a clock that is set back by more than
 * MAX_AHEAD_MS takes them back: otherwise they would be ahead for as long as the clock was, or until a restart.
 */
export function newId(prefix: IdPrefix, nowMs = Date.now()): string {
  if (nowMs > lastMs || nowMs < lastMs - MAX_AHEAD_MS) {
    lastMs = nowMs;
    sequence = randomByte() & 0x7f;
  } else if (++sequence > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  const bytes = fresh;
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | sequence, 6);
  for (let i = 8; i < 16; i++) bytes[i] = randomByte();
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return `${prefix}_${base32(bytes)}`;
}

/** The lowest id body that an id minted at or after `ms` can have: a bound for range partitions and time scans. */
export function idBound(prefix: IdPrefix, ms: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(Math.max(0, Math.trunc(ms)), 0, 6);
  return `${prefix}_${base32(bytes)}`;
}

/** Two leading zero bits and the 48 bits of the time. */
const TIME_CHARS = 10;

/** The time in an id of ours, in milliseconds. */
export function idTimeMs(id: string): number {
  const from = id.indexOf('_') + 1;
  let ms = 0;
  for (let at = from; at < from + TIME_CHARS; at++) ms = ms * 32 + ALPHABET.indexOf(id[at]!);
  return ms;
}

/** The form of an id after its prefix, for patterns. */
export const ID_FORM = '[0-7][0-9a-hjkmnp-tv-z]{25}';
const ID = new RegExp(`^${ID_FORM}$`);

/** The pattern of an id with this prefix, for schemas. */
export const idPattern = (prefix: IdPrefix): string => `^${prefix}_${ID_FORM}$`;

/** Whether `value` has the form of an id with this prefix. */
export function isId(prefix: IdPrefix, value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(`${prefix}_`) && ID.test(value.slice(prefix.length + 1));
}

function randomByte(): number {
  if (poolUsed === RANDOM_BYTES) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  return pool[poolUsed++]!;
}

const ID_CHARS = 26;
const ALPHABET_CODES = Buffer.from(ALPHABET, 'latin1');
const chars = Buffer.alloc(ID_CHARS);

/** 16 bytes as 26 characters, most significant first, so that text order is byte order. */
function base32(bytes: Buffer): string {
  // 26 characters of 5 bits hold 130: two leading zero bits.
  let bits = 0;
  let width = 2;
  let at = 0;
  for (let i = 0; i < bytes.length; i++) {
    bits = (bits << 8) | bytes[i]!;
    width += 8;
    while (width >= 5) {
      width -= 5;
      chars[at++] = ALPHABET_CODES[(bits >>> width) & 31]!;
    }
    bits &= (1 << width) - 1;
  }
  // A string that grows character by character would cost an object for each.
  return chars.toString('latin1');
}
