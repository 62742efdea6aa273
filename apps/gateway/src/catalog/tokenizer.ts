import { createRequire } from 'node:module';
import type { Tokenizer } from './catalog';

/**
 * Runs of one kind of character that are longer are cut before they are counted: byte-pair encoding is quadratic in the length of such a run
 * (64,000 × "a": 2 s). Cutting never makes the count smaller, and ordinary text has no such runs.
 */
const MAX_RUN_CHARS = 256;
const LONG_RUN = new RegExp(
  `[\\p{L}\\p{M}]{${MAX_RUN_CHARS},}|[^\\s\\p{L}\\p{M}\\p{N}]{${MAX_RUN_CHARS},}|\\s{${MAX_RUN_CHARS},}`,
  'gu',
);

interface Encoding {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
  isWithinTokenLimit(text: string, limit: number, options: { disallowedSpecial: Set<string> }): false | number;
}

/** Text that looks like a special token is text: a client's words never become control tokens. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };
const loaded = new Map<Tokenizer, Encoding>();

/** Tokens of `text`, exact for text without very long runs of one kind of character, else an upper bound. Loads the encoding at first use (0.2 s, 77 MB). */
export function countTokens(tokenizer: Tokenizer, text: string): number {
  return countWithin(tokenizer, text, Infinity);
}

/** Loads an encoding before it is needed: a request should not wait for it, nor all others with it. */
export function loadTokenizer(tokenizer: Tokenizer): void {
  encodingOf(tokenizer);
}

/** Whether it need not be loaded any more. */
export function isLoaded(tokenizer: Tokenizer): boolean {
  return loaded.has(tokenizer);
}

/** As countTokens, but stops once the count is above `limit`; then the answer is Infinity. */
export function countWithin(tokenizer: Tokenizer, text: string, limit: number): number {
  const encoding = encodingOf(tokenizer);
  let count = 0;
  for (const piece of text.length < MAX_RUN_CHARS ? [text] : cutLongRuns(text)) {
    if (limit === Infinity) {
      count += encoding.countTokens(piece, PLAIN_TEXT);
      continue;
    }
    if (count > limit) return Infinity;
    const within = encoding.isWithinTokenLimit(piece, limit - count, PLAIN_TEXT);
    if (within === false) return Infinity;
    count += within;
  }
  return count;
}

function cutLongRuns(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { index, 0: run } of text.matchAll(LONG_RUN)) {
    if (index > from) pieces.push(text.slice(from, index));
    for (let at = 0; at < run.length; at += MAX_RUN_CHARS) pieces.push(run.slice(at, at + MAX_RUN_CHARS));
    from = index + run.length;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}

function encodingOf(tokenizer: Tokenizer): Encoding {
  let encoding = loaded.get(tokenizer);
  if (!encoding) {
    // By require, so that each is loaded only when a model needs it (together they are 200 MB), and once in a process.
    encoding = createRequire(__filename)(`gpt-tokenizer/encoding/${tokenizer}`) as Encoding;
    loaded.set(tokenizer, encoding);
  }
  return encoding;
}
