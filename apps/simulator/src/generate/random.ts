/** A stream of 32-bit numbers that the seed determines (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** 0 … 2³² − 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** 0 … below − 1. */
  below(below: number): number {
    return this.next() % below;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }
}

/** FNV-1a over UTF-16 units, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** Combines two seeds into one. The order matters. */
export function mix(a: number, b: number): number {
  let hash = Math.imul(a ^ (b >>> 16) ^ (b << 11), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ b, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
