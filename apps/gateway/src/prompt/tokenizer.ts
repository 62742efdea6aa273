import { createRequire } from 'node:module';
import { BytePairs, MAX_PIECE_BYTES } from './byte-pairs';
import type { Tokenizer } from '../catalog/catalog';
import { forEachPiece } from './pieces';
import { ShortWords } from './short-words';
import { readVocabulary, vocabularyFile } from './vocabulary';

/** Longer runs without a place to divide them are cut. Natural text has no such run. */
const MAX_PIECE_CHARS = MAX_PIECE_BYTES / 3;
/** A cut may lower the count by this much, because two halves may have fewer tokens than the whole. */
const TOKENS_PER_CUT = 1;

interface Encoding {
  pairs: BytePairs;
  words: ShortWords;
  /** Divides a text into the pieces that are merged separately. */
  pattern: RegExp;
}

const PATTERNS = {
  o200k_base: 'O200K_TOKEN_SPLIT_REGEX',
  cl100k_base: 'CL100K_TOKEN_SPLIT_REGEX',
  p50k_base: 'R50K_TOKEN_SPLIT_REGEX',
  r50k_base: 'R50K_TOKEN_SPLIT_REGEX',
} as const satisfies Record<Tokenizer, string>;

export const ENCODINGS = Object.keys(PATTERNS) as Tokenizer[];

const loaded = new Map<Tokenizer, Encoding>();

/**
 * Counts the tokens of `text`. The count is exact, except for runs of thousands of characters of one kind: then it is
 * an upper bound. Special tokens are counted as text, because the words of a client never become control tokens. The
 * time is proportional to the length of any text. Loads the encoding at first use (60 ms; 15 MB stay).
 */
export function countTokens(tokenizer: Tokenizer, text: string): number {
  return countWithin(tokenizer, text, Infinity);
}

/** Loads an encoding in advance: loading blocks all requests of the process. */
export function loadTokenizer(tokenizer: Tokenizer): void {
  encodingOf(tokenizer);
}

/**
 * As countTokens, but returns Infinity as soon as the count exceeds `limit`.
 * @param windowChars characters matched at a time; smaller in tests of the cuts
 */
export function countWithin(
  tokenizer: Tokenizer,
  text: string,
  limit: number,
  windowChars: number = MAX_PIECE_CHARS,
): number {
  const { pairs, words, pattern } = encodingOf(tokenizer);
  // Even the longest tokens could not cover this text within the limit.
  if (text.length > limit * pairs.longestTokenBytes) return Infinity;
  let count = 0;
  const visit = (piece: string, isCut: boolean): boolean => {
    const tokens = pairs.count(piece);
    count += isCut ? Math.min(tokens + TOKENS_PER_CUT, Buffer.byteLength(piece)) : tokens;
    return count <= limit;
  };
  const take = (from: number, end: number): number => {
    let at = from;
    for (let tokens = words.count(at); tokens > 0 && words.end <= end; tokens = words.count(at)) {
      count += tokens;
      if (count > limit) return -1;
      at = words.end;
    }
    return at;
  };
  // Only short texts: the time for a long one is bounded as a multiple of the time for English.
  const shortcut = text.length <= windowChars ? { load: (window: string) => words.load(window), take } : undefined;
  forEachPiece(text, pattern, windowChars, visit, shortcut);
  return count <= limit ? count : Infinity;
}

function encodingOf(tokenizer: Tokenizer): Encoding {
  let encoding = loaded.get(tokenizer);
  if (!encoding) {
    const { source, flags } = patternOf(tokenizer);
    const pairs = new BytePairs(readVocabulary(vocabularyFile(tokenizer)));
    const words = new ShortWords((piece) => pairs.count(piece));
    encoding = { pairs, words, pattern: new RegExp(source, flags) };
    loaded.set(tokenizer, encoding);
  }
  return encoding;
}

function patternOf(tokenizer: Tokenizer): RegExp {
  const patterns = createRequire(__filename)('gpt-tokenizer/encodingParams/constants') as Record<string, RegExp>;
  return patterns[PATTERNS[tokenizer]]!;
}
