import { createRequire } from 'node:module';
import { BytePairs, MAX_PIECE_BYTES } from './byte-pairs';
import type { Tokenizer } from '../catalog/catalog';
import { forEachPiece } from './pieces';

/** Longer runs without any place to divide them are cut. No such run is text. */
const MAX_PIECE_CHARS = MAX_PIECE_BYTES / 3;
/** By how much a cut may make the count smaller: two halves may have fewer tokens than the whole. */
const TOKENS_PER_CUT = 1;

interface Encoding {
  pairs: BytePairs;
  /** Divides a text into the pieces that are merged each by itself. */
  pattern: RegExp;
}

const PATTERNS = {
  o200k_base: 'O200K_TOKEN_SPLIT_REGEX',
  cl100k_base: 'CL100K_TOKEN_SPLIT_REGEX',
  p50k_base: 'R50K_TOKEN_SPLIT_REGEX',
  r50k_base: 'R50K_TOKEN_SPLIT_REGEX',
} as const satisfies Record<Tokenizer, string>;

const loaded = new Map<Tokenizer, Encoding>();

/**
 * Tokens of `text`, exact for text without runs of thousands of characters of one kind, else an upper bound. What looks
 * like a special token is text: a client's words never become control tokens. Takes time in proportion to the text,
 * whatever it is. Loads the encoding at first use (0.3 s, 50 MB).
 */
export function countTokens(tokenizer: Tokenizer, text: string): number {
  return countWithin(tokenizer, text, Infinity);
}

/** Loads an encoding before it is needed: a request should not wait for it, nor all others with it. */
export function loadTokenizer(tokenizer: Tokenizer): void {
  encodingOf(tokenizer);
}

/**
 * As countTokens, but stops once the count is above `limit`; then the answer is Infinity.
 * @param windowChars looked at at once; smaller in tests of the cuts
 */
export function countWithin(
  tokenizer: Tokenizer,
  text: string,
  limit: number,
  windowChars: number = MAX_PIECE_CHARS,
): number {
  const { pairs, pattern } = encodingOf(tokenizer);
  // So long that no tokens are long enough.
  if (text.length > limit * pairs.longestTokenBytes) return Infinity;
  let count = 0;
  forEachPiece(text, pattern, windowChars, (piece, isCut) => {
    const tokens = pairs.count(piece);
    count += isCut ? Math.min(tokens + TOKENS_PER_CUT, Buffer.byteLength(piece)) : tokens;
    return count <= limit;
  });
  return count <= limit ? count : Infinity;
}

function encodingOf(tokenizer: Tokenizer): Encoding {
  let encoding = loaded.get(tokenizer);
  if (!encoding) {
    // By require, so that each is loaded only when a model needs it (together they are 200 MB), and once in a process.
    // Of the library its data alone: see byte-pairs.ts.
    const require = createRequire(__filename);
    const ranks = require(`gpt-tokenizer/bpeRanks/${tokenizer}`) as { default: (string | number[])[] };
    const patterns = require('gpt-tokenizer/encodingParams/constants') as Record<string, RegExp>;
    const { source, flags } = patterns[PATTERNS[tokenizer]]!;
    encoding = { pairs: new BytePairs(ranks.default), pattern: new RegExp(source, flags) };
    loaded.set(tokenizer, encoding);
  }
  return encoding;
}
