import { RankQueue } from './rank-queue';

/** Bytes of the longest piece that is merged (a text in UTF-8 has up to three a character). */
export const MAX_PIECE_BYTES = 3 * 4_096;
/** Up to it looking at all pairs for the best is faster than a queue. */
const SHORT_PIECE_BYTES = 40;
const PAIR_FIELDS = 3;
/** A pair that is no token: above all ranks. */
const NONE = 2 ** 30;
const { imul } = Math;

/**
 * Byte-pair encoding by the ranks of a vocabulary, to count. As tiktoken does it: of all neighbours whose bytes
 * together are a token, those with the lowest rank are merged, the leftmost first, until none is left.
 *
 * The library's own merging looks each pair up by its bytes, decoded to a string, and searches all pairs for each
 * merge: 1 µs a byte of base64, and quadratic. Here a token is made of two in one way only (between its first and last
 * byte all merges go as they go when it stands alone), which have lower ranks; and these have lower ranks. So a table
 * from two ranks to a rank is enough, and merging never goes back to a lower rank: the time is in proportion to the
 * piece.
 */
export class BytePairs {
  /** No token has more bytes, and none more characters. */
  readonly longestTokenBytes: number;
  private readonly words: ReadonlySet<string>;
  /** Rank of each byte, and of two bytes; -1: none. */
  private readonly bytes = new Int32Array(256).fill(-1);
  private readonly pairsOfBytes = new Int32Array(256 * 256).fill(-1);
  /** By hashing, with open addresses: left rank + 1, right rank, rank of both. */
  private readonly pairs: Int32Array;
  private readonly mask: number;
  // Of the piece at hand.
  private readonly encoder = new TextEncoder();
  private readonly piece = new Uint8Array(MAX_PIECE_BYTES);
  private readonly ranks = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly merged = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly next = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly before = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly queue: RankQueue;

  /** @param vocabulary tokens by rank; what is no valid UTF-8 as its bytes */
  constructor(vocabulary: readonly (string | readonly number[] | undefined)[]) {
    const slots = 2 ** Math.ceil(Math.log2(vocabulary.length * 2));
    this.pairs = new Int32Array(slots * PAIR_FIELDS);
    this.mask = slots - 1;
    // Each merge makes two new pairs at the most.
    this.queue = new RankQueue(vocabulary.length, 3 * MAX_PIECE_BYTES);
    const words = new Set<string>();
    let longest = 1;
    for (const [rank, token] of vocabulary.entries()) {
      if (token === undefined) continue;
      if (typeof token === 'string') words.add(token);
      const length = this.load(token);
      longest = Math.max(longest, length);
      if (length === 1) this.bytes[this.piece[0]!] = rank;
    }
    this.words = words;
    this.longestTokenBytes = longest;
    // In the order of the ranks: what a token is made of comes before it.
    for (const [rank, token] of vocabulary.entries()) {
      if (token === undefined) continue;
      const length = this.load(token);
      if (length < 2) continue;
      if (length === 2) {
        this.pairsOfBytes[this.piece[0]! * 256 + this.piece[1]!] = rank;
        continue;
      }
      if (this.mergeShort(length) !== 2) throw new Error(`token ${rank} is not made of two with lower ranks`);
      this.addPair(this.ranks[0]!, this.ranks[1]!, rank);
    }
  }

  /** Tokens of a piece of text with at most MAX_PIECE_BYTES. */
  count(piece: string): number {
    if (piece.length <= this.longestTokenBytes && this.words.has(piece)) return 1;
    const length = this.encoder.encodeInto(piece, this.piece).written;
    return length <= SHORT_PIECE_BYTES ? this.mergeShort(length) : this.mergeLong(length);
  }

  private load(token: string | readonly number[]): number {
    if (typeof token === 'string') return this.encoder.encodeInto(token, this.piece).written;
    this.piece.set(token);
    return token.length;
  }

  private mergeShort(length: number): number {
    const { ranks, merged } = this;
    this.begin(length);
    let left = length;
    for (;;) {
      let best = -1;
      let bestRank = NONE;
      for (let at = 0; at < left - 1; at++) {
        const rank = merged[at]!;
        if (rank < bestRank) {
          bestRank = rank;
          best = at;
        }
      }
      if (best === -1) return left;
      ranks[best] = bestRank;
      left -= 1;
      for (let at = best + 1; at < left; at++) {
        ranks[at] = ranks[at + 1]!;
        merged[at] = merged[at + 1]!;
      }
      merged[best] = best + 1 < left ? this.pair(bestRank, ranks[best + 1]!) : NONE;
      if (best > 0) merged[best - 1] = this.pair(ranks[best - 1]!, bestRank);
    }
  }

  private mergeLong(length: number): number {
    const { ranks, merged, next, before, queue } = this;
    this.begin(length);
    for (let at = length - 1; at >= 0; at--) {
      next[at] = at + 1;
      before[at] = at - 1;
      if (merged[at] !== NONE) queue.add(merged[at]!, at);
    }
    let left = length;
    for (let rank = queue.takeLowest(); rank !== -1; rank = queue.takeLowest()) {
      for (let i = 0; i < queue.takenCount; i++) {
        const at = queue.taken[i]!;
        // Merged otherwise in the meantime.
        if (merged[at] !== rank) continue;
        const gone = next[at]!;
        const after = next[gone]!;
        ranks[at] = rank;
        next[at] = after;
        merged[gone] = NONE;
        merged[at] = NONE;
        left -= 1;
        if (after < length) {
          before[after] = at;
          const further = this.pair(rank, ranks[after]!);
          merged[at] = further;
          if (further !== NONE) queue.add(further, at);
        }
        const previous = before[at]!;
        if (previous >= 0) {
          const further = this.pair(ranks[previous]!, rank);
          merged[previous] = further;
          if (further !== NONE) queue.add(further, previous);
        }
      }
    }
    return left;
  }

  /** Bytes as tokens, and what each is with its right neighbour. */
  private begin(length: number): void {
    const { piece, ranks, merged } = this;
    for (let at = 0; at < length; at++) ranks[at] = this.bytes[piece[at]!]!;
    for (let at = 0; at < length - 1; at++) {
      const rank = this.pairsOfBytes[piece[at]! * 256 + piece[at + 1]!]!;
      merged[at] = rank === -1 ? NONE : rank;
    }
    if (length > 0) merged[length - 1] = NONE;
  }

  private pair(left: number, right: number): number {
    const { pairs, mask } = this;
    for (let slot = hash(left, right) & mask; ; slot = (slot + 1) & mask) {
      const at = slot * PAIR_FIELDS;
      const found = pairs[at]!;
      if (found === 0) return NONE;
      if (found === left + 1 && pairs[at + 1] === right) return pairs[at + 2]!;
    }
  }

  private addPair(left: number, right: number, rank: number): void {
    let slot = hash(left, right) & this.mask;
    while (this.pairs[slot * PAIR_FIELDS] !== 0) slot = (slot + 1) & this.mask;
    this.pairs.set([left + 1, right, rank], slot * PAIR_FIELDS);
  }
}

function hash(left: number, right: number): number {
  const mixed = imul(left, 0x9e3779b1) ^ imul(right, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
