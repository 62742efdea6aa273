/** JSON on the wire as latin1 strings: one character a byte (sse-frames.ts). */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** More levels than any honest chunk or answer has. */
export const MAX_NESTING = 512;

/** Up to this length, searching a text for other characters than ASCII is faster than a conversion by Node. */
const MAX_SEARCHED_CHARS = 256;
const NOT_ASCII = /[^\t\n\r -~]/;
const NOT_PLAIN = /[^ !#-[\]-~]/;

/** A value as JSON in UTF-8, one character a byte. */
export function toWire(value: unknown): string {
  return utf8ToWire(JSON.stringify(value));
}

/** A text in UTF-8, one character a byte. */
function utf8ToWire(text: string): string {
  // ASCII is the same in UTF-8.
  if (text.length <= MAX_SEARCHED_CHARS && !NOT_ASCII.test(text)) return text;
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The reverse of `utf8ToWire`. */
function utf8FromWire(latin1: string): string {
  if (latin1.length <= MAX_SEARCHED_CHARS && !NOT_ASCII.test(latin1)) return latin1;
  return Buffer.from(latin1, 'latin1').toString('utf8');
}

/**
 * Parses JSON in UTF-8, one character a byte. Throws SyntaxError, also if it is nested so deeply that serialising it
 * would overflow the stack.
 */
export function fromWire(latin1: string): unknown {
  if (isNestedTooDeeply(latin1)) throw new SyntaxError('nested too deeply');
  return JSON.parse(utf8FromWire(latin1));
}

/** The text as a string body: what is between the quotes of a JSON string. */
export function toStringBody(text: string): string {
  return isPlain(text) ? text : toWire(text).slice(1, -1);
}

/**
 * The text of one or more joined string bodies, in UTF-8, one character a byte. An invalid one (a backend's bad escape)
 * is not unescaped.
 */
export function fromStringBody(body: string): string {
  if (isPlain(body)) return body;
  try {
    return fromWire(`"${body}"`) as string;
  } catch {
    return Buffer.from(body, 'latin1').toString('utf8');
  }
}

/** Whether a text is the same as the body of a JSON string: printable ASCII without quotes and backslashes. */
function isPlain(text: string): boolean {
  return text.length <= MAX_SEARCHED_CHARS && !NOT_PLAIN.test(text);
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
function isNestedTooDeeply(json: string): boolean {
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
