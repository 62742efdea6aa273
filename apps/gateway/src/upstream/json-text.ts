/** JSON on the wire as latin1 strings: one character a byte (sse-frames.ts). */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** More levels than any honest chunk or answer has. */
const MAX_NESTING = 512;

/** A value as JSON in UTF-8, one character a byte. */
export function toWire(value: unknown): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('latin1');
}

/**
 * Parses JSON in UTF-8, one character a byte. Throws SyntaxError, also if it is nested so deeply that serialising it
 * would overflow the stack.
 */
export function fromWire(latin1: string): unknown {
  if (isNestedTooDeeply(latin1)) throw new SyntaxError('nested too deeply');
  return JSON.parse(Buffer.from(latin1, 'latin1').toString('utf8'));
}

/** The text as a string body: what is between the quotes of a JSON string. */
export function toStringBody(text: string): string {
  return toWire(text).slice(1, -1);
}

/**
 * Whether `body` is a valid string body: no quote in it is unescaped, and its last character does not escape the
 * closing quote.
 */
export function isStringBody(body: string): boolean {
  let at = body.indexOf('"');
  if (at === -1 && body.charCodeAt(body.length - 1) !== BACKSLASH) return true;
  for (; at !== -1; at = body.indexOf('"', at + 1)) if (!isEscaped(body, at)) return false;
  return !isEscaped(body, body.length);
}

/** The position of the quote that closes the JSON string opened at `open`, or -1. */
export function endOfString(json: string, open: number): number {
  for (let at = json.indexOf('"', open + 1); at !== -1; at = json.indexOf('"', at + 1)) {
    if (json.charCodeAt(at) === QUOTE && !isEscaped(json, at, open + 1)) return at;
  }
  return -1;
}

/** Whether an odd number of backslashes is before `at`. */
function isEscaped(text: string, at: number, from = 0): boolean {
  let backslashes = 0;
  while (at - 1 - backslashes >= from && text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

/** Whether serialising the parsed value could overflow the stack. */
export function isNestedTooDeeply(json: string): boolean {
  return json.length > MAX_NESTING && isNestedDeeper(json, MAX_NESTING);
}

/** Whether arrays and objects are nested more than `levels` deep. Strings are skipped. */
function isNestedDeeper(json: string, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(json, at);
      if (at === -1) return false;
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > levels) return true;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return false;
}
