const BITS = 5;
const WORD = 31;
const { clz32 } = Math;

/**
 * Positions in a piece, ordered by the rank of their merge. They are taken lowest rank first, and leftmost first within
 * a rank. A new entry always has a higher rank than the last one taken, because a token is made of tokens with lower
 * ranks. So each entry has constant cost: there is a list for each rank, and bits mark the lists that have entries. A
 * heap took a third of the time of counting, and four times as long for runs of one character.
 */
export class RankQueue {
  /** Index + 1 of the first entry of each rank's list. 0: empty. */
  private readonly heads: Int32Array;
  private readonly places: Int32Array;
  /** Index + 1 of the next entry in the same list. 0: the last. */
  private readonly nexts: Int32Array;
  private entries = 0;
  /** Bit r of the first level: rank r has entries. Bit w of each further level: word w of the level below is not 0. */
  private readonly levels: Int32Array[] = [];
  /** Positions of the rank that was taken last, in ascending order. */
  readonly taken: Int32Array;
  takenCount = 0;

  constructor(ranks: number, maxEntries: number) {
    this.heads = new Int32Array(ranks);
    this.places = new Int32Array(maxEntries);
    this.nexts = new Int32Array(maxEntries);
    this.taken = new Int32Array(maxEntries);
    for (let words = ranks; words > 1 || this.levels.length === 0;) {
      words = (words + WORD) >> BITS;
      this.levels.push(new Int32Array(words));
    }
  }

  add(rank: number, place: number): void {
    const entry = this.entries++;
    const head = this.heads[rank]!;
    this.places[entry] = place;
    this.nexts[entry] = head;
    this.heads[rank] = entry + 1;
    if (head !== 0) return;
    let bit = rank;
    for (const level of this.levels) {
      const word = bit >> BITS;
      const before = level[word]!;
      level[word] = before | (1 << (bit & WORD));
      if (before !== 0) return;
      bit = word;
    }
  }

  /**
   * Takes the lowest rank, and puts its positions into `taken`. -1 when the queue is empty; it can then be used again.
   */
  takeLowest(): number {
    const { levels } = this;
    let bit = 0;
    for (let depth = levels.length - 1; depth >= 0; depth--) {
      const word = levels[depth]![bit]!;
      if (word === 0) {
        this.entries = 0;
        return -1;
      }
      bit = (bit << BITS) | (WORD - clz32(word & -word));
    }
    this.takeList(bit);
    this.clear(bit);
    return bit;
  }

  private takeList(rank: number): void {
    const { places, nexts, taken } = this;
    let count = 0;
    let isAscending = true;
    let isDescending = true;
    for (let entry = this.heads[rank]!; entry !== 0; entry = nexts[entry - 1]!) {
      const place = places[entry - 1]!;
      if (count > 0) {
        if (place < taken[count - 1]!) isAscending = false;
        else isDescending = false;
      }
      taken[count++] = place;
    }
    this.takenCount = count;
    if (isAscending) return;
    // The last added entry is the first of its list, so the positions are mostly in reverse order.
    if (isDescending) taken.subarray(0, count).reverse();
    else taken.subarray(0, count).sort();
  }

  private clear(rank: number): void {
    this.heads[rank] = 0;
    let bit = rank;
    for (const level of this.levels) {
      const word = bit >> BITS;
      level[word]! &= ~(1 << (bit & WORD));
      if (level[word] !== 0) return;
      bit = word;
    }
  }
}
