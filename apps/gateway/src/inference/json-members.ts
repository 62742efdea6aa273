import { endOfString, fromWire } from '../upstream/json-text';

/** The position of a member in the JSON of its object: `start` is its name's quote, `end` is after its value. */
export interface Member {
  name: string;
  start: number;
  valueStart: number;
  end: number;
}

/**
 * The members of the outermost object, in order and with duplicates. A plain answer of a backend is passed on as these
 * slices. So numbers that JavaScript cannot hold stay unchanged, and a long answer is not serialised again to replace
 * its id.
 * @param json an object that JSON.parse has accepted, one character a byte (latin1)
 */
export function membersOf(json: string): Member[] {
  const members: Member[] = [];
  let at = afterBlanks(json, json.indexOf('{') + 1);
  while (json[at] === '"') {
    const start = at;
    const nameEnd = endOfString(json, start) + 1;
    const valueStart = afterBlanks(json, afterBlanks(json, nameEnd) + 1);
    const end = afterValue(json, valueStart);
    members.push({ name: fromWire(json.slice(start, nameEnd)) as string, start, valueStart, end });
    at = afterBlanks(json, afterBlanks(json, end) + 1);
  }
  return members;
}

function afterBlanks(json: string, from: number): number {
  let at = from;
  while (json.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

function afterValue(json: string, from: number): number {
  const first = json[from];
  if (first === '"') return endOfString(json, from) + 1;
  if (first !== '{' && first !== '[') {
    const ends = /[,}\]\s]/g;
    ends.lastIndex = from;
    return ends.exec(json)!.index;
  }
  // Counts brackets and skips strings.
  const signs = /["{}[\]]/g;
  signs.lastIndex = from;
  let depth = 0;
  for (let sign = signs.exec(json); sign; sign = signs.exec(json)) {
    if (sign[0] === '"') signs.lastIndex = endOfString(json, sign.index) + 1;
    else depth += sign[0] === '{' || sign[0] === '[' ? 1 : -1;
    if (depth === 0) return signs.lastIndex;
  }
  throw new SyntaxError('not an object that JSON.parse has accepted');
}
