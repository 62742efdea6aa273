/**
 * Kinds of bytes: 0 blank, 1 newline, 2 digit, 3 small letter, 4 capital, 5 sign, 6 to 8 first byte of a UTF-8
 * character of two, three or four bytes, 9 a further byte of it.
 */
const [BLANK, NEWLINE, DIGIT, SMALL, CAPITAL, SIGN, TWO, THREE, FOUR, REST] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const KINDS = 10;
/** Unit of the cost of a byte: 1/64 of a token. */
const PARTS = 64;

const kindOf = new Uint8Array(256).map((_, byte) => {
  if (byte >= 0x80) return byte >= 0xf0 ? FOUR : byte >= 0xe0 ? THREE : byte >= 0xc0 ? TWO : REST;
  const char = String.fromCharCode(byte);
  if (/[a-z]/.test(char)) return SMALL;
  if (/[A-Z]/.test(char)) return CAPITAL;
  if (/[0-9]/.test(char)) return DIGIT;
  return char === ' ' || char === '\t' ? BLANK : char === '\n' || char === '\r' ? NEWLINE : SIGN;
});

/**
 * Cost of a byte by its kind and the kind before it: a word costs most at its start, and a little for each further
 * letter. Fitted to o200k_base on prose, code and JSON.
 */
const partsOf = new Uint8Array(256);
for (let before = 0; before < KINDS; before += 1) {
  for (let kind = 0; kind < KINDS; kind += 1) partsOf[(before << 4) | kind] = parts(before, kind);
}

function parts(before: number, kind: number): number {
  switch (kind) {
    case BLANK:
      return before === BLANK ? 1 : before === NEWLINE ? 16 : 0;
    case NEWLINE:
      return before === NEWLINE ? 8 : 40;
    case DIGIT:
      return before === DIGIT ? 21 : before === BLANK ? 96 : 40;
    case SMALL:
      return before === SMALL || before >= TWO ? 9 : before === CAPITAL ? 12 : 38;
    case CAPITAL:
      return before === CAPITAL ? 28 : 40;
    case SIGN:
      return before === SIGN ? 32 : 46;
    case TWO:
      return 24;
    case THREE:
      return 44;
    case FOUR:
      return 120;
    default:
      return 0;
  }
}

/**
 * Estimates the tokens of UTF-8 bytes, at 2 ns a byte; counting takes 55 ns. Good for English (`Prose`). For other text
 * it may be wrong by a factor of five and more.
 */
export function estimateTokens(bytes: Uint8Array, from = 0, to = bytes.length): number {
  let sum = 0;
  let before = 0;
  for (let i = from; i < to; i += 1) {
    const kind = kindOf[bytes[i]!]!;
    sum += partsOf[before | kind]!;
    before = kind << 4;
  }
  return sum / PARTS;
}

/**
 * A third to a half of the words of English prose are among these. Other languages, code and random letters have almost
 * none.
 */
const COMMON_WORDS = new Set(
  (
    'the of and to in a is that for it as was with be by on not he his but at are this have from or had an they ' +
    'which one you were all we can has there if will when so no what use may than only'
  )
    .split(' ')
    .map((word) => [...word].reduce((code, char) => code * 256 + char.charCodeAt(0), 0)),
);
const LEAST_COMMON = 0.25;
/**
 * The largest part of bytes that may be digits, signs, capitals, other scripts or blanks after blanks. Older encodings
 * have a token for each of many of them.
 */
const MOST_OTHERS = 0.1;
const MOST_LETTERS = 20;
/** Each window of this length is judged separately, so that English text cannot hide other text beside it. */
const WINDOW_BYTES = 1024;

/**
 * An estimate that is trusted only for English prose, which every encoding was made for. Any other text must be
 * counted.
 */
export class Prose {
  tokens = 0;
  isTrusted = true;

  add(bytes: Uint8Array, from = 0, to = bytes.length): void {
    for (let at = from; at < to && this.isTrusted;) {
      const end = to - at < 2 * WINDOW_BYTES ? to : at + WINDOW_BYTES;
      this.isTrusted = isProse(bytes, at, end);
      at = end;
    }
    if (this.isTrusted) this.tokens += estimateTokens(bytes, from, to);
  }
}

function isProse(bytes: Uint8Array, from: number, to: number): boolean {
  let [words, common, others, letters, code, before] = [0, 0, 0, 0, 0, BLANK];
  for (let i = from; i <= to; i += 1) {
    const byte = i === to ? 0x20 : bytes[i]!;
    const kind = kindOf[byte]!;
    if (kind === SMALL || kind === CAPITAL) {
      letters += 1;
      if (letters > MOST_LETTERS) return false;
      // No common word has five or more letters.
      code = letters > 4 ? 0 : code * 256 + (byte | 0x20);
      if (kind === CAPITAL) others += 1;
    } else {
      if (letters > 0) {
        words += 1;
        if (COMMON_WORDS.has(code)) common += 1;
      }
      letters = 0;
      code = 0;
      if (kind !== BLANK || (before === BLANK && i < to)) others += 1;
    }
    before = kind;
  }
  return common >= words * LEAST_COMMON && others <= (to - from) * MOST_OTHERS;
}
