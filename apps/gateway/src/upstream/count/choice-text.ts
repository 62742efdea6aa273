import { Prose } from '../../prompt/token-estimate';
import type { Piece } from '../wire/chunk-translator';
import { fromStringBody } from '../wire/json-text';
import { countBody, PART_CHARS, startsToken } from './text-parts';

/** The first bytes of a choice. A request may have 32,768 choices with a token each. */
const SLOT_BYTES = 32;
const MAX_BLOCK_BYTES = 64 * 1024;
/**
 * Text without blanks (Chinese, base64) is cut after this much, possibly within a token. Otherwise each count would
 * start again at the beginning. It is one part at most, so that the count of what remains depends on no limit.
 */
const MAX_TAIL_BYTES = PART_CHARS;
/** Up to this length, copying a text character by character is faster than a call into Node. */
const SHORT_CHARS = 32;

/** Hands out slots of SLOT_BYTES in blocks that the choices of a stream share. A buffer for each takes 250 bytes. */
export class Slots {
  block = Buffer.alloc(0);
  private free = 0;

  /** Where the next slot starts in `block`. */
  next(): number {
    if (this.free === this.block.length) {
      this.block = Buffer.allocUnsafeSlow(Math.min(MAX_BLOCK_BYTES, Math.max(SLOT_BYTES, 2 * this.block.length)));
      this.free = 0;
    }
    this.free += SLOT_BYTES;
    return this.free - SLOT_BYTES;
  }
}

/**
 * The text of one choice, kept as the body of a JSON string. It is copied out of the network chunks: slices would keep
 * these in memory, which is twenty times as much. Counts are incremental. In every encoding a blank before a letter
 * starts a new token, so the text before it, the head, is counted once. The rest is the tail.
 */
export class ChoiceText {
  /** The least number of tokens: one or more per chunk. */
  least = 0;
  /** The tokens of the head, regardless of what follows. */
  headTokens = 0;
  /** A cut may be within a token, which makes `headTokens` too high. */
  isRough = false;
  /** The tokens of all text. Null: not known since the last change. */
  counted: number | null = null;
  private bytes: Buffer;
  /** The text is in `bytes` from `start` to `end`. There is room up to `room`, and the head ends at `tailAt`. */
  private start: number;
  private end: number;
  private room: number;
  private tailAt: number;

  constructor(
    readonly choice: number,
    slots: Slots,
  ) {
    this.start = this.end = this.tailAt = slots.next();
    this.bytes = slots.block;
    this.room = this.start + SLOT_BYTES;
  }

  add({ text, least }: Piece): void {
    if (this.end + text.length > this.room) this.grow(text.length);
    if (text.length > SHORT_CHARS) this.bytes.write(text, this.end, 'latin1');
    else for (let i = 0; i < text.length; i += 1) this.bytes[this.end + i] = text.charCodeAt(i);
    this.end += text.length;
    this.least += least;
  }

  get tail(): string {
    return this.bytes.toString('latin1', this.tailAt, this.end);
  }

  get tailBytes(): number {
    return this.end - this.tailAt;
  }

  /** The tail is so short that each further count finds the same, whatever its limit. */
  get isSettled(): boolean {
    return this.tailBytes <= MAX_TAIL_BYTES;
  }

  /** Moves the head's end to the last certain token boundary. */
  countHead(countText: (text: string) => number): void {
    let end = this.end - 2;
    while (end > this.tailAt && !startsToken(this.bytes[end]!, this.bytes[end + 1]!)) end -= 1;
    if (end <= this.tailAt) {
      if (this.isSettled) return;
      end = this.end;
      this.isRough = true;
    }
    this.headTokens += countBody(this.bytes.toString('latin1', this.tailAt, end), Infinity, countText);
    this.tailAt = end;
  }

  /** Counts all text as a whole. It becomes the head. */
  recount(countText: (text: string) => number): void {
    this.headTokens = countText(fromStringBody(this.bytes.toString('latin1', this.start, this.end)));
    this.tailAt = this.end;
  }

  /** The approximate number of tokens: the tail is estimated. Null if the estimate would be unreliable. */
  estimate(): number | null {
    const prose = new Prose();
    prose.add(this.bytes, this.tailAt, this.end);
    return prose.isTrusted ? Math.max(this.least, this.headTokens + prose.tokens) : null;
  }

  private grow(more: number): void {
    const used = this.end - this.start;
    const grown = Buffer.allocUnsafeSlow(Math.max((this.room - this.start) * 2, used + more));
    this.bytes.copy(grown, 0, this.start, this.end);
    this.bytes = grown;
    this.tailAt -= this.start;
    this.start = 0;
    this.end = used;
    this.room = grown.length;
  }
}
