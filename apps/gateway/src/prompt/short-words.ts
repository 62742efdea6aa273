/** Slots of the cache, 16 bytes each. English uses some ten thousand words. */
const SLOTS = 2 ** 14;
const SLOT_FIELDS = 4;
/** ASCII has 7 bits, so a slot's key has 4 characters in each of its 3 numbers. */
const CHAR_BITS = 7;
const CHARS_PER_NUMBER = 4;
const MAX_CHARS = 3 * CHARS_PER_NUMBER;
/** UTF-8 has at most three bytes for a character of UTF-16. */
const MAX_BYTES_PER_CHAR = 3;
const BLANK = 0x20;
const APOSTROPHE = 0x27;
/** In the place of all characters beyond ASCII. */
const OTHER = 0x80;
const { imul } = Math;

/**
 * Counts the tokens of short English words: a blank or none, a capital or none, and small letters. Such a word is one
 * piece in every encoding, if no letter and no apostrophe follows it. Most of a prompt and of an answer are such words.
 * They are found without the pattern of the encoding, and their tokens are remembered, which takes a third of the time.
 * A word replaces another one with the same slot.
 */
export class ShortWords {
  /** The end of the word that was counted last. */
  end = 0;
  private text = '';
  /** The text's characters, and a 0 after them. */
  private codes = new Uint8Array(0);
  private readonly encoder = new TextEncoder();
  private readonly slots = new Int32Array(SLOTS * SLOT_FIELDS);

  /** @param countPiece counts the tokens of a piece */
  constructor(private readonly countPiece: (piece: string) => number) {}

  load(text: string): void {
    this.text = text;
    const { length } = text;
    const room = MAX_BYTES_PER_CHAR * length + 1;
    if (this.codes.length < room) this.codes = new Uint8Array(room);
    const { codes } = this;
    // Reading a character takes several times as long as reading a byte.
    if (this.encoder.encodeInto(text, codes).written > length)
      for (let at = 0; at < length; at += 1) codes[at] = Math.min(text.charCodeAt(at), OTHER);
    codes[length] = 0;
  }

  /** The tokens of the word at `from` in the loaded text, and its `end`. 0: no such word starts there. */
  count(from: number): number {
    const { codes } = this;
    let at = from;
    let first = 0;
    let second = 0;
    let third = 0;
    let code = codes[at]!;
    if (code === BLANK) {
      first = BLANK;
      code = codes[++at]!;
    }
    if (isCapital(code)) {
      first |= code << (CHAR_BITS * (at - from));
      code = codes[++at]!;
    }
    const smallFrom = at;
    for (; isSmall(code); code = codes[++at]!) {
      const place = at - from;
      if (place >= MAX_CHARS) return 0;
      const bits = code << (CHAR_BITS * (place % CHARS_PER_NUMBER));
      if (place < CHARS_PER_NUMBER) first |= bits;
      else if (place < 2 * CHARS_PER_NUMBER) second |= bits;
      else third |= bits;
    }
    if (at === smallFrom || isCapital(code) || code === APOSTROPHE || code === OTHER) return 0;
    this.end = at;
    return this.remembered(from, first, second, third);
  }

  private remembered(from: number, first: number, second: number, third: number): number {
    const { slots } = this;
    const mixed = imul(first, 0x9e3779b1) ^ imul(second, 0x85ebca6b) ^ imul(third, 0xc2b2ae35);
    const slot = ((mixed ^ (mixed >>> 15)) & (SLOTS - 1)) * SLOT_FIELDS;
    if (slots[slot] === first && slots[slot + 1] === second && slots[slot + 2] === third) return slots[slot + 3]!;
    const tokens = this.countPiece(this.text.slice(from, this.end));
    slots[slot] = first;
    slots[slot + 1] = second;
    slots[slot + 2] = third;
    slots[slot + 3] = tokens;
    return tokens;
  }
}

function isSmall(code: number): boolean {
  return code >= 0x61 && code <= 0x7a;
}

function isCapital(code: number): boolean {
  return code >= 0x41 && code <= 0x5a;
}
