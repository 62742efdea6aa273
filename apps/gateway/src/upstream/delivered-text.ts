import type { Piece } from './chunk-translator';
import { fromWire } from './json-text';

const FIRST_BYTES = 512;
/** Text without blanks (Chinese, base64) is cut after so much all the same, at the risk of a token: or each count would begin at its start again. */
const MAX_TAIL_BYTES = 4 * 1024;
/** Of text that is not counted yet; real text has about four. Errs to fewer tokens. */
const MOST_BYTES_PER_TOKEN = 8;
const BLANK = 0x20;

/** The text of one choice. What is before `countedTo` has `tokens`, whatever follows. */
interface Kept {
  bytes: Buffer;
  used: number;
  countedTo: number;
  tokens: number;
}

/**
 * The text that a stream delivered, choice by choice, kept as bytes of JSON strings: to be counted. Copied out of the network chunks, which it would
 * otherwise keep alive at twenty times the size. Counts are incremental: a blank before a letter begins a new piece in every encoding, so what is before it
 * is counted once.
 */
export class DeliveredText {
  private readonly choices = new Map<number, Kept>();
  private counted = 0;
  private newPieces = 0;
  private newBytes = 0;

  /** @param countText tokens of a text, by the model's tokenizer */
  constructor(private readonly countText: (text: string) => number) {}

  add({ choice, text }: Piece): void {
    let kept = this.choices.get(choice);
    if (!kept) {
      kept = { bytes: Buffer.allocUnsafeSlow(FIRST_BYTES), used: 0, countedTo: 0, tokens: 0 };
      this.choices.set(choice, kept);
    }
    if (kept.used + text.length > kept.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(kept.bytes.length * 2, kept.used + text.length));
      kept.bytes.copy(grown, 0, 0, kept.used);
      kept.bytes = grown;
    }
    kept.used += kept.bytes.write(text, kept.used, 'latin1');
    this.newPieces += 1;
    this.newBytes += text.length;
  }

  /** Tokens of all of it. */
  tokens(): number {
    if (this.newPieces === 0) return this.counted;
    this.counted = this.tokensWith([]);
    this.newPieces = 0;
    this.newBytes = 0;
    return this.counted;
  }

  /** Tokens of all of it with these pieces after it. */
  tokensWith(more: readonly Piece[]): number {
    const rest = new Map<number, string>();
    for (const { choice, text } of more) rest.set(choice, (rest.get(choice) ?? '') + text);
    let tokens = 0;
    for (const [choice, kept] of this.choices) {
      this.settleHead(kept);
      tokens +=
        kept.tokens + this.count(kept.bytes.toString('latin1', kept.countedTo, kept.used) + (rest.get(choice) ?? ''));
      rest.delete(choice);
    }
    for (const text of rest.values()) tokens += this.count(text);
    return tokens;
  }

  /** At least so many tokens, without counting: the last count, and for what came since fewer than it can well be. */
  leastTokens(): number {
    return this.counted + Math.min(this.newPieces, Math.floor(this.newBytes / MOST_BYTES_PER_TOKEN));
  }

  /** Bytes that `tokens` would count now. */
  get uncountedBytes(): number {
    if (this.newPieces === 0) return 0;
    let bytes = 0;
    for (const { used, countedTo } of this.choices.values()) bytes += used - countedTo;
    return bytes;
  }

  private settleHead(kept: Kept): void {
    let end = kept.used - 2;
    while (end > kept.countedTo && !(kept.bytes[end] === BLANK && isLetter(kept.bytes[end + 1]!))) end -= 1;
    if (end <= kept.countedTo) {
      if (kept.used - kept.countedTo <= MAX_TAIL_BYTES) return;
      end = kept.used;
    }
    kept.tokens += this.count(kept.bytes.toString('latin1', kept.countedTo, end));
    kept.countedTo = end;
  }

  private count(body: string): number {
    return body === '' ? 0 : this.countText(decode(body));
  }
}

function isLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
}

/** Bodies of JSON strings in a row are the body of one. What is none (a backend's invalid escape) is counted as it stands. */
function decode(body: string): string {
  try {
    return fromWire(`"${body}"`) as string;
  } catch {
    return Buffer.from(body, 'latin1').toString('utf8');
  }
}
