import { InferenceError } from '../inference-errors';

/** More than any tool schema has. Recursion over a deeper body could overflow the stack, here or in the backend. */
const MAX_DEPTH = 64;
/** Members of all objects together. 20,000 messages have 40,000. */
const MAX_MEMBERS = 100_000;
/** Items of all arrays together: 2,048 inputs of 256 tokens are half a million. */
export const MAX_ITEMS = 1_000_000;
/** The most members of one object. JSON.parse makes a hash table of more names, at ten times the cost. */
const MAX_MEMBERS_PER_OBJECT = 4_096;
/** More than any honest number has. Parsing a number takes quadratic time. */
const MAX_NUMBER_CHARS = 400;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Refuses a body that is expensive to parse, before it is parsed: one pass over its bytes, without recursion or
 * allocation. The parser checks that the JSON is valid. Throws InferenceError invalid_value with the outermost field as
 * `param`.
 */
export function checkStructure(raw: Buffer): void {
  const membersAt = new Uint32Array(MAX_DEPTH + 1);
  let depth = 0;
  let members = 0;
  let items = 0;
  let numberFrom = -1;
  let stringFrom = 0;
  let stringTo = 0;
  let fieldFrom = 0;
  let fieldTo = 0;
  const refuse = (what: string): never => {
    const field = fieldTo > fieldFrom ? raw.toString('utf8', fieldFrom, Math.min(fieldTo, fieldFrom + 64)) : null;
    throw new InferenceError('invalid_value', {
      message: `${field === null ? 'The body' : `'${field}'`} ${what}.`,
      param: field,
    });
  };
  for (let at = 0; at < raw.length; at += 1) {
    const byte = raw[at]!;
    if (byte === QUOTE) {
      stringFrom = at + 1;
      at = closingQuote(raw, stringFrom);
      stringTo = at;
    } else if ((byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e) {
      // A digit, or a sign or point of a number.
      if (numberFrom === -1) numberFrom = at;
      else if (at - numberFrom > MAX_NUMBER_CHARS) refuse(`has a number of more than ${MAX_NUMBER_CHARS} characters`);
      continue;
    } else if (byte === COLON) {
      if (depth === 1) [fieldFrom, fieldTo] = [stringFrom, stringTo];
      members += 1;
      membersAt[depth]! += 1;
      if (membersAt[depth]! > MAX_MEMBERS_PER_OBJECT)
        refuse(`has an object with more than ${MAX_MEMBERS_PER_OBJECT} members`);
      if (members > MAX_MEMBERS) refuse(`has more than ${MAX_MEMBERS} members in its objects`);
    } else if (byte === COMMA) {
      items += 1;
      if (items > MAX_ITEMS) refuse(`has more than ${MAX_ITEMS} items`);
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1;
      items += 1;
      if (depth > MAX_DEPTH) refuse(`is nested more than ${MAX_DEPTH} levels deep`);
      membersAt[depth] = 0;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // Unbalanced brackets are invalid JSON, which the parser reports.
      depth = Math.max(0, depth - 1);
    }
    if (byte !== 0x65 && byte !== 0x45) numberFrom = -1;
  }
}

/** The position of the quote that ends a string, or the end of the bytes. */
function closingQuote(raw: Buffer, from: number): number {
  for (let at = raw.indexOf(QUOTE, from); at !== -1; at = raw.indexOf(QUOTE, at + 1)) {
    let backslashes = 0;
    while (at - 1 - backslashes >= from && raw[at - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  return raw.length;
}
