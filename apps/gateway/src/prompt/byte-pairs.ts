import { RankQueue } from './rank-queue';
import { TokenBytes } from './token-bytes';
import type { Vocabulary } from './vocabulary';

/** Bytes of the longest piece that is merged. A UTF-16 character has at most three bytes of UTF-8. */
export const MAX_PIECE_BYTES = 3 * 4_096;
/** Up to this length, searching all pairs for the best is faster than a queue. */
const SHORT_PIECE_BYTES = 40;
const PAIR_FIELDS = 3;
/** Rank of a pair that is not a token: above all ranks. */
const NONE = 2 ** 30;
const { imul } = Math;

/**
 * Counts the tokens of byte-pair encoding by the ranks of a vocabulary. It works like tiktoken: of all neighbours whose
 * bytes together are a token, it merges those with the lowest rank, the leftmost first, until none is left.
 *
 * The merging of the library decodes each pair to a string to look it up, and searches all pairs for each merge. That
 * takes 1 µs a byte of base64, and quadratic time. Here a table from two ranks to a rank is enough, because each token
 * is made of two tokens in exactly one way: the merges between its first and last byte are the merges of the token
 * alone. Both parts have lower ranks than the token. So merging never returns to a lower rank, and the time is
 * proportional to the length of the piece.
 */
export class BytePairs {
  /** The bytes of the longest token; no token has more characters either. */
  readonly longestTokenBytes: number;
  /** Whole tokens, so that most pieces need no merges. */
  private readonly words: TokenBytes;
  /** Rank of each single byte, and of each two bytes. -1: none. */
  private readonly bytes = new Int32Array(256).fill(-1);
  private readonly pairsOfBytes = new Int32Array(256 * 256).fill(-1);
  /** Hash table with open addressing: left rank + 1, right rank, rank of both. */
  private readonly pairs: Int32Array;
  private readonly mask: number;
  // State of the piece that is counted.
  private readonly encoder = new TextEncoder();
  private readonly piece = new Uint8Array(MAX_PIECE_BYTES);
  private readonly ranks = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly merged = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly next = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly before = new Int32Array(MAX_PIECE_BYTES + 1);
  private readonly queue: RankQueue;

  /** Finds the parts of all tokens that the vocabulary does not name, and writes them into it. */
  constructor(vocabulary: Vocabulary) {
    const { lengths, bytes, parts } = vocabulary;
    const slots = 2 ** Math.ceil(Math.log2(lengths.length * 2));
    this.pairs = new Int32Array(slots * PAIR_FIELDS);
    this.mask = slots - 1;
    // Each merge makes at most two new pairs.
    this.queue = new RankQueue(lengths.length, 3 * MAX_PIECE_BYTES);
    this.words = new TokenBytes(vocabulary);
    let longest = 1;
    for (let rank = 0, start = 0; rank < lengths.length; start += lengths[rank++]!) {
      const length = lengths[rank]!;
      longest = Math.max(longest, length);
      if (length === 1) this.bytes[bytes[start]!] = rank;
      if (length === 2) this.pairsOfBytes[bytes[start]! * 256 + bytes[start + 1]!] = rank;
    }
    this.longestTokenBytes = longest;
    // In the order of the ranks: the parts of a token come before it.
    for (let rank = 0, start = 0; rank < lengths.length; start += lengths[rank++]!) {
      const length = lengths[rank]!;
      if (length <= 2) continue;
      // No token of three bytes is made of two times the first token, which has one byte.
      if (parts[2 * rank] === 0 && parts[2 * rank + 1] === 0) {
        this.piece.set(bytes.subarray(start, start + length));
        if (this.mergeShort(length) !== 2) throw new Error(`token ${rank} is not made of two with lower ranks`);
        parts.set(this.ranks.subarray(0, 2), 2 * rank);
      }
      this.addPair(parts[2 * rank]!, parts[2 * rank + 1]!, rank);
    }
  }

  /** Counts the tokens of a piece of at most MAX_PIECE_BYTES. */
  count(piece: string): number {
    const length = this.encoder.encodeInto(piece, this.piece).written;
    if (length <= this.longestTokenBytes && this.words.has(this.piece, length)) return 1;
    return length <= SHORT_PIECE_BYTES ? this.mergeShort(length) : this.mergeLong(length);
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
        // Already merged differently.
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

  /** Makes each byte a token, and looks up its merge with the right neighbour. */
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
    const at = slot * PAIR_FIELDS;
    this.pairs[at] = left + 1;
    this.pairs[at + 1] = right;
    this.pairs[at + 2] = rank;
  }
}

function hash(left: number, right: number): number {
  const mixed = imul(left, 0x9e3779b1) ^ imul(right, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
