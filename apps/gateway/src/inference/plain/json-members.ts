import { endOfString, fromStringBody, MAX_NESTING } from '../../upstream/wire/json-text';

/** The position of a member in the JSON of its object: `start` is its name's quote, `end` is after its value. */
export interface Member {
  name: string;
  start: number;
  valueStart: number;
  end: number;
  /** The number of member names within its value, with duplicates. */
  names: number;
}

/**
 * Three times the objects in 96 MiB of `logprobs`. JSON.parse cannot be interrupted: 30 million empty objects (90 MB)
 * take it minutes and 2.7 GB, beyond every limit of a worker thread.
 */
export const MAX_OBJECTS = 8_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const LAST_BLANK = 0x20;

/**
 * The members of the outermost object, in order and with duplicates. A plain answer of a backend is passed on as these
 * slices. So numbers that JavaScript cannot hold stay unchanged, and a long answer is not serialised again to replace
 * its id. One pass, without recursion. Throws SyntaxError if the JSON is nested too deeply to be parsed, or if it has
 * too many objects and arrays.
 * @param json one character a byte (latin1). If JSON.parse does not accept it as an object, the result has no meaning.
 */
export function membersOf(json: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let objects = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const start = at;
      at = endOfString(json, start);
      if (at === -1) break;
      const next = afterBlanks(json, at + 1);
      if (json.charCodeAt(next) !== COLON) continue;
      if (depth === 1) {
        const name = fromStringBody(json.slice(start + 1, at));
        members.push({ name, start, valueStart: afterBlanks(json, next + 1), end: json.length, names: 0 });
      } else if (members.length > 0) members.at(-1)!.names += 1;
      at = next;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      objects += 1;
      if (depth > MAX_NESTING || objects > MAX_OBJECTS) throw new SyntaxError('nested too deeply, or too many objects');
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) endLast(members, json, at);
    } else if (code === COMMA && depth === 1) endLast(members, json, at);
  }
  return members;
}

function endLast(members: readonly Member[], json: string, at: number): void {
  const last = members.at(-1);
  if (last) last.end = beforeBlanks(json, at);
}

function afterBlanks(json: string, from: number): number {
  let at = from;
  while (json.charCodeAt(at) <= LAST_BLANK) at += 1;
  return at;
}

function beforeBlanks(json: string, end: number): number {
  let at = end;
  while (json.charCodeAt(at - 1) <= LAST_BLANK) at -= 1;
  return at;
}
