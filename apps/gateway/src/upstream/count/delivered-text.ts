import { ChoiceText, Slots } from './choice-text';
import type { Piece } from '../wire/chunk-translator';
import { fromStringBody, toStringBody } from '../wire/json-text';
import { countBody, endOfPart, isBetweenSurrogates } from './text-parts';

/** For estimates of uncounted text. Real text has about four, so the estimate is low. */
const MOST_BYTES_PER_TOKEN = 8;
/** Counting a choice, however short, takes as long as counting this much text: 1.3 µs. */
const CHOICE_BYTES = 24;

/**
 * The text that a stream delivered, per choice, kept for counting. A count visits only the choices that have changed
 * since the last one, because a request may have 32,768 choices.
 *
 * Each chunk counts as one token or more, however short its text: the backend generated it separately.
 */
export class DeliveredText {
  /** The tool calls that it has. */
  calls = 0;
  /** A part of it is reasoning. */
  reasons = false;
  private readonly choices = new Map<number, ChoiceText>();
  private readonly slots = new Slots();
  /** Those whose `counted` is null. */
  private readonly changed = new Set<ChoiceText>();
  /** Of all other choices. */
  private unchangedTokens = 0;
  /** Those whose head was cut within a token, possibly. */
  private readonly rough = new Set<ChoiceText>();
  private counted = 0;
  private newPieces = 0;
  private newBytes = 0;
  private least = 0;

  /** @param countText counts a text's tokens with the model's tokenizer */
  constructor(private readonly countText: (text: string) => number) {}

  add(piece: Piece): void {
    let kept = this.choices.get(piece.choice);
    if (kept) this.noteChange(kept);
    else {
      kept = new ChoiceText(piece.choice, this.slots);
      this.choices.set(piece.choice, kept);
      this.changed.add(kept);
    }
    kept.add(piece);
    this.least += piece.least;
    this.calls += piece.calls ?? 0;
    this.reasons ||= piece.reasons ?? false;
    this.newPieces += 1;
    this.newBytes += piece.text.length;
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
    if (this.rough.size === 0) return tokens;
    for (const kept of this.rough) {
      this.noteChange(kept);
      kept.recount(this.countText);
    }
    return this.sumWith(more, limit);
  }

  /**
   * The longest start of the piece's text with which all delivered text, `before` and this start have at most `limit`
   * tokens. May be a few tokens short. Returns the body of a JSON string.
   */
  fitting(before: readonly Piece[], piece: Piece, limit: number): string {
    const kept = this.choices.get(piece.choice);
    const ofChoice = before.filter(({ choice }) => choice === piece.choice);
    const room = limit - (this.sumWith(before, limit) - this.choiceWith(kept, ofChoice, limit));
    const [head, least] = [kept?.headTokens ?? 0, kept?.least ?? 0];
    if (ofChoice.reduce((sum, one) => sum + one.least, least) + piece.least > room) return '';
    const start = fromStringBody((kept?.tail ?? '') + joined(ofChoice));
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
      const estimate = kept.estimate();
      if (estimate === null) return null;
      tokens += estimate;
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

  /** The bytes that `tokens` would have to count now, with CHOICE_BYTES for each choice that it would visit. */
  get uncountedBytes(): number {
    if (this.newPieces === 0) return 0;
    let bytes = this.changed.size * CHOICE_BYTES;
    for (const { tailBytes } of this.changed) bytes += tailBytes;
    return bytes;
  }

  private noteChange(kept: ChoiceText): void {
    if (kept.counted === null) return;
    this.unchangedTokens -= kept.counted;
    kept.counted = null;
    this.changed.add(kept);
  }

  private sumWith(more: readonly Piece[], limit: number): number {
    const pieces = byChoice(more);
    let tokens = this.unchangedTokens;
    for (const choice of pieces.keys()) tokens -= this.choices.get(choice)?.counted ?? 0;
    for (const kept of this.changed) if (!pieces.has(kept.choice)) tokens += this.settle(kept, limit - tokens);
    for (const [choice, some] of pieces) tokens += this.choiceWith(this.choices.get(choice), some, limit - tokens);
    return tokens;
  }

  /** The tokens of a changed choice. It is unchanged from now on, unless the next count would change it again. */
  private settle(kept: ChoiceText, limit: number): number {
    const tokens = this.choiceWith(kept, [], limit);
    if (kept.isSettled) {
      kept.counted = tokens;
      this.unchangedTokens += tokens;
      this.changed.delete(kept);
    }
    return tokens;
  }

  /** The tokens of a choice's text, if it has any, followed by these pieces. */
  private choiceWith(kept: ChoiceText | undefined, more: readonly Piece[], limit: number): number {
    const least = more.reduce((sum, piece) => sum + piece.least, kept?.least ?? 0);
    if (!kept) return Math.max(least, countBody(joined(more), limit, this.countText));
    kept.countHead(this.countText);
    if (kept.isRough) this.rough.add(kept);
    const tail = countBody(kept.tail + joined(more), limit - kept.headTokens, this.countText);
    return Math.max(least, kept.headTokens + tail);
  }
}

function byChoice(pieces: readonly Piece[]): Map<number, Piece[]> {
  const some = new Map<number, Piece[]>();
  for (const piece of pieces) {
    const known = some.get(piece.choice);
    if (known) known.push(piece);
    else some.set(piece.choice, [piece]);
  }
  return some;
}

function joined(pieces: readonly Piece[]): string {
  return pieces.length === 1 ? pieces[0]!.text : pieces.map(({ text }) => text).join('');
}
