/** Of the tokens of an encoding, on average; the table grows if they have more. */
const USUAL_TOKEN_BYTES = 8;
const { imul } = Math;

/**
 * The tokens of a vocabulary by their bytes. They are in a few buffers, which a collection of the process's garbage does
 * not look into. As a Set of 200,000 strings they took 18 MB of its heap, and 40 % of the time of a full collection.
 */
export class TokenBytes {
  private bytes: Uint8Array;
  /** The first byte of each token, and the end of the last one. */
  private readonly starts: Uint32Array;
  private count = 0;
  /** Hash table with open addressing: the place of a token + 1. */
  private readonly slots: Int32Array;
  private readonly mask: number;

  constructor(private readonly maxTokens: number) {
    this.bytes = new Uint8Array(maxTokens * USUAL_TOKEN_BYTES);
    this.starts = new Uint32Array(maxTokens + 1);
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(maxTokens * 2 + 1)));
    this.mask = this.slots.length - 1;
  }

  /** Adds the token in the first `length` bytes of `from`. */
  add(from: Uint8Array, length: number): void {
    const { count, starts, slots, mask } = this;
    if (count === this.maxTokens) throw new Error(`more than ${count} tokens`);
    const start = starts[count]!;
    this.makeRoom(start + length);
    this.bytes.set(from.subarray(0, length), start);
    let slot = hash(from, length) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    this.count = slots[slot] = count + 1;
    starts[count + 1] = start + length;
  }

  /** Whether the first `length` bytes of `piece` are a token. */
  has(piece: Uint8Array, length: number): boolean {
    const { bytes, starts, slots, mask } = this;
    for (let slot = hash(piece, length) & mask; ; slot = (slot + 1) & mask) {
      const found = slots[slot]!;
      if (found === 0) return false;
      const start = starts[found - 1]!;
      if (starts[found]! - start !== length) continue;
      let at = 0;
      while (at < length && bytes[start + at] === piece[at]) at += 1;
      if (at === length) return true;
    }
  }

  private makeRoom(bytes: number): void {
    if (bytes <= this.bytes.length) return;
    const larger = new Uint8Array(2 * bytes);
    larger.set(this.bytes);
    this.bytes = larger;
  }
}

function hash(bytes: Uint8Array, length: number): number {
  let mixed = length;
  for (let at = 0; at < length; at += 1) mixed = imul(mixed ^ bytes[at]!, 0x01000193);
  mixed = imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}
