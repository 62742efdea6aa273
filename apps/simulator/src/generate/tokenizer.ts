import { createRequire } from 'node:module';
import { hashText } from './random';

type Encoding = typeof import('gpt-tokenizer/encoding/o200k_base');

const MAX_CACHED_TEXTS = 1_000;
const MAX_CACHED_TEXT_CHARS = 65_536;
/**
 * Byte-pair merging takes quadratic time for a run without a blank (50,000 times "x": 1.3 s). So texts with longer runs
 * are counted in slices.
 */
const MAX_RUN_CHARS = 4_096;
const SLICE_CHARS = 512;
/** `<|endoftext|>` in a prompt is text like any other. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

/** The properties of a text. */
export interface MeasuredText {
  tokens: number;
  /** 32 bits; the same for the same text. */
  hash: number;
}

const cache = new Map<string, MeasuredText>();
let encoding: Encoding | undefined;

/**
 * o200k_base, loaded at the first use because it takes 0.2 s and 80 MB. CommonJS, so that one process has only one
 * copy.
 */
function o200kBase(): Encoding {
  encoding ??= createRequire(__filename)('gpt-tokenizer/encoding/o200k_base') as Encoding;
  return encoding;
}

/**
 * Counts the o200k_base tokens of a text. The count is exact, except for texts with a run of over 4,096 characters
 * without a blank: it may be one token per 512 characters too high. Counts of recent texts are cached.
 */
export function measure(text: string): MeasuredText {
  const known = cache.get(text);
  if (known) return known;
  const measured = { tokens: count(text), hash: hashText(text) };
  if (text.length > MAX_CACHED_TEXT_CHARS) return measured;
  if (cache.size >= MAX_CACHED_TEXTS) cache.delete(cache.keys().next().value!);
  cache.set(text, measured);
  return measured;
}

/**
 * Splits a text into its tokens. Only for ASCII, where each token is a string. A run of more
 * than 512 letters, blanks or signs may have more tokens than with o200k_base.
 */
export function split(ascii: string): string[] {
  const { encode, decode } = o200kBase();
  return slices(ascii).flatMap((slice) => encode(slice, AS_TEXT).map((token) => decode([token])));
}

/** Cuts a text where more than `SLICE_CHARS` of one kind are in a row. Digits are merged three at a time anyway. */
function slices(ascii: string): string[] {
  const out = [];
  let start = 0;
  let run = 0;
  let kind = '';
  for (let i = 0; i < ascii.length; i++) {
    const next = kindOf(ascii.charCodeAt(i));
    run = next === kind && next !== 'digit' ? run + 1 : 1;
    kind = next;
    if (run <= SLICE_CHARS) continue;
    out.push(ascii.slice(start, i));
    start = i;
    run = 1;
  }
  out.push(ascii.slice(start));
  return out;
}

function kindOf(code: number): 'blank' | 'digit' | 'letter' | 'sign' {
  if (code <= 0x20) return 'blank';
  if (code >= 0x30 && code <= 0x39) return 'digit';
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a ? 'letter' : 'sign';
}

function count(text: string): number {
  const { countTokens } = o200kBase();
  if (text.length <= MAX_RUN_CHARS || !hasLongRun(text)) return countTokens(text, AS_TEXT);
  let tokens = 0;
  let previous = '';
  let previousTokens = 0;
  for (let at = 0; at < text.length; at += SLICE_CHARS) {
    const slice = text.slice(at, at + SLICE_CHARS);
    // A filler such as "xxx…" has many equal slices.
    if (slice !== previous) previousTokens = countTokens(slice, AS_TEXT);
    previous = slice;
    tokens += previousTokens;
  }
  return tokens;
}

/**
 * Whether the text has more than `MAX_RUN_CHARS` characters in a row that are all blank or all non-blank. Takes linear
 * time, unlike a regular expression.
 */
function hasLongRun(text: string): boolean {
  let start = 0;
  let blank = false;
  for (let i = 0; i < text.length; i++) {
    const isBlank = text.charCodeAt(i) <= 0x20;
    if (isBlank !== blank) {
      start = i;
      blank = isBlank;
    } else if (i - start >= MAX_RUN_CHARS) return true;
  }
  return false;
}
