import type { Piece } from './chunk-translator';
import { fromStringBody, toStringBody } from './json-text';
import { Prose } from '../prompt/token-estimate';

const FIRST_BYTES = 512;
/**
 * Text without blanks (Chinese, base64) is cut after this much, possibly within a token. Otherwise each count would
 * start again at the beginning.
 */
const MAX_TAIL_BYTES = 4 * 1024;
/** A long text is counted in parts of about this size, so that counting can stop at the limit. */
const PART_CHARS = 4 * 1024;
/** The longest text that is counted in one go: 7 ms at 55 ns a character. */
const MAX_WHOLE_CHARS = 128 * 1024;
/** For estimates of uncounted text. Real text has about four, so the estimate is low. */
const MOST_BYTES_PER_TOKEN = 8;
/** Up to this length, copying a text character by character is faster than a call into Node. */
const SHORT_CHARS = 32;
const BLANK = 0x20;

/** The text of one choice. The bytes before `countedTo` have `tokens` tokens, regardless of what follows. */
interface Kept {
  bytes: Buffer;
  used: number;
  countedTo: number;
  tokens: number;
  /** The least number of tokens: one or more per chunk. */
  least: number;
  /** A cut may be within a token, which makes `tokens` too high. */
  isRough: boolean;
}

/**
 * The text that a stream delivered, per choice, kept for counting as bodies of JSON strings. It is copied out of the
 * network chunks: slices would keep these in memory, which is twenty times as much. Counts are incremental. In every
 * encoding a blank before a letter starts a new token, so the text before it is counted once.
 *
 * Each chunk counts as one token or more, however short its text: the backend generated it separately.
 */
export class DeliveredText {
  private readonly choices = new Map<number, Kept>();
  private counted = 0;
  private newPieces = 0;
  private newBytes = 0;
  private least = 0;

  /** @param countText counts a text's tokens with the model's tokenizer */
  constructor(private readonly countText: (text: string) => number) {}

  add({ choice, text, least }: Piece): void {
    let kept = this.choices.get(choice);
    if (!kept) {
      kept = {
        bytes: Buffer.allocUnsafeSlow(FIRST_BYTES),
        used: 0,
        countedTo: 0,
        tokens: 0,
        least: 0,
        isRough: false,
      };
      this.choices.set(choice, kept);
    }
    if (kept.used + text.length > kept.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(kept.bytes.length * 2, kept.used + text.length));
      kept.bytes.copy(grown, 0, 0, kept.used);
      kept.bytes = grown;
    }
    if (text.length > SHORT_CHARS) kept.bytes.write(text, kept.used, 'latin1');
    else for (let i = 0; i < text.length; i += 1) kept.bytes[kept.used + i] = text.charCodeAt(i);
    kept.used += text.length;
    kept.least += least;
    this.least += least;
    this.newPieces += 1;
    this.newBytes += text.length;
  }

  /** The tokens of all text, counted. */
  tokens(): number {
    if (this.newPieces === 0) return this.counted;
    this.counted = this.tokensWith([]);
    this.newPieces = 0;
    this.newBytes = 0;
    return this.counted;
  }

  /**
   * The tokens of all text followed by these pieces. Counting stops above `limit`: the result is then some number above
   * it.
   */
  tokensWith(more: readonly Piece[], limit = Infinity): number {
    const tokens = this.sumWith(more, limit);
    if (tokens <= limit || limit === Infinity) return tokens;
    // A cut within a token must not end a stream early, so such text is counted again as a whole. At the end of a
    // stream that happens about three times at most, as the new count is exact.
    let isRough = false;
    for (const kept of this.choices.values()) isRough = this.recount(kept) || isRough;
    return isRough ? this.sumWith(more, limit) : tokens;
  }

  /**
   * The longest start of the piece's text with which all delivered text, `before` and this start have at most `limit`
   * tokens. May be a few tokens short. Returns the body of a JSON string.
   */
  fitting(before: readonly Piece[], piece: Piece, limit: number): string {
    const ofChoice = (one: Piece) => one.choice === piece.choice;
    const others = this.sumWith(before, limit) - this.choiceWith(piece.choice, before.filter(ofChoice), limit);
    const room = limit - others;
    const kept = this.choices.get(piece.choice);
    const [head, least] = [kept?.tokens ?? 0, kept?.least ?? 0];
    if (before.filter(ofChoice).reduce((sum, one) => sum + one.least, least) + piece.least > room) return '';
    const start = fromStringBody(this.tailOf(kept) + joined(before.filter(ofChoice)));
    const text = start + fromStringBody(piece.text);
    // Whole parts while they fit, then a binary search within the next part.
    let at = 0;
    let tokens = head;
    for (let end = endOfPart(text, at); at < text.length; end = endOfPart(text, at)) {
      const more = this.countText(text.slice(at, end));
      if (tokens + more > room) break;
      tokens += more;
      at = end;
    }
    let [fits, tooLong] = [Math.max(at, start.length), endOfPart(text, at) + 1];
    while (tooLong - fits > 1) {
      const middle = (fits + tooLong) >> 1;
      if (tokens + this.countText(text.slice(at, middle)) <= room) fits = middle;
      else tooLong = middle;
    }
    const end = isBetweenSurrogates(text, fits) ? fits - 1 : fits;
    return end <= start.length ? '' : toStringBody(text.slice(start.length, end));
  }

  /** The approximate number of tokens: uncounted text is estimated. Null if the estimate would be unreliable. */
  estimate(): number | null {
    let tokens = 0;
    for (const kept of this.choices.values()) {
      const prose = new Prose();
      prose.add(kept.bytes, kept.countedTo, kept.used);
      if (!prose.isTrusted) return null;
      tokens += Math.max(kept.least, kept.tokens + prose.tokens);
    }
    return tokens;
  }

  /**
   * A lower bound of the tokens, without counting: the last count plus a low estimate of newer text, and at least one
   * per chunk.
   */
  leastTokens(): number {
    const likely = Math.min(this.newPieces, Math.floor(this.newBytes / MOST_BYTES_PER_TOKEN));
    return Math.max(this.least, this.counted + likely);
  }

  /** The bytes that `tokens` would have to count now. */
  get uncountedBytes(): number {
    if (this.newPieces === 0) return 0;
    let bytes = 0;
    for (const { used, countedTo } of this.choices.values()) bytes += used - countedTo;
    return bytes;
  }

  private sumWith(more: readonly Piece[], limit: number): number {
    let tokens = 0;
    for (const choice of this.choices.keys()) tokens += this.choiceWith(choice, more, limit - tokens);
    for (const choice of new Set(more.map((piece) => piece.choice)))
      if (!this.choices.has(choice)) tokens += this.choiceWith(choice, more, limit - tokens);
    return tokens;
  }

  private choiceWith(choice: number, all: readonly Piece[], limit: number): number {
    const more = all.filter((piece) => piece.choice === choice);
    const kept = this.choices.get(choice);
    if (kept) this.countHead(kept);
    const least = more.reduce((sum, piece) => sum + piece.least, kept?.least ?? 0);
    const head = kept?.tokens ?? 0;
    return Math.max(least, head + this.count(this.tailOf(kept) + joined(more), limit - head));
  }

  private tailOf(kept: Kept | undefined): string {
    return kept ? kept.bytes.toString('latin1', kept.countedTo, kept.used) : '';
  }

  /** Counts the text up to its last certain token boundary. */
  private countHead(kept: Kept): void {
    let end = kept.used - 2;
    while (end > kept.countedTo && !(kept.bytes[end] === BLANK && isLetter(kept.bytes[end + 1]!))) end -= 1;
    if (end <= kept.countedTo) {
      if (kept.used - kept.countedTo <= MAX_TAIL_BYTES) return;
      end = kept.used;
      kept.isRough = true;
    }
    kept.tokens += this.count(kept.bytes.toString('latin1', kept.countedTo, end), Infinity);
    kept.countedTo = end;
  }

  private recount(kept: Kept): boolean {
    if (!kept.isRough) return false;
    kept.tokens = this.countText(fromStringBody(kept.bytes.toString('latin1', 0, kept.used)));
    kept.countedTo = kept.used;
    return true;
  }

  private count(body: string, limit: number): number {
    if (body === '') return 0;
    const text = fromStringBody(body);
    if (limit === Infinity || text.length <= PART_CHARS) return this.countText(text);
    let tokens = 0;
    for (let at = 0; at < text.length && tokens <= limit;) {
      const end = endOfPart(text, at);
      tokens += this.countText(text.slice(at, end));
      at = end;
    }
    // A part may end within a token, which makes the sum too high. Above the limit the whole text is counted.
    return tokens > limit && text.length <= MAX_WHOLE_CHARS ? this.countText(text) : tokens;
  }
}

function joined(pieces: readonly Piece[]): string {
  return pieces.length === 1 ? pieces[0]!.text : pieces.map(({ text }) => text).join('');
}

/**
 * The end of the part that starts at `from`: the first certain token boundary after PART_CHARS, or twice PART_CHARS.
 */
function endOfPart(text: string, from: number): number {
  if (text.length - from <= PART_CHARS) return text.length;
  const last = Math.min(text.length, from + 2 * PART_CHARS);
  for (let at = from + PART_CHARS; at < last - 1; at += 1)
    if (text.charCodeAt(at) === BLANK && isLetter(text.charCodeAt(at + 1))) return at;
  return isBetweenSurrogates(text, last) ? last - 1 : last;
}

function isBetweenSurrogates(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  return before >= 0xd800 && before <= 0xdbff && at < text.length;
}

function isLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
}
