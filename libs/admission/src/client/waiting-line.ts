import { UnavailableError } from '@tollgate/contracts';

export const MAX_BATCH_CHARS = 8 * 1024 * 1024;
/** More than a store answers in several seconds. Beyond it the process is overloaded and refuses at once. */
const MAX_WAITING_ITEMS = 10_000;
/** The same for one owner, if owners take turns. */
export const MAX_WAITING_ITEMS_PER_OWNER = 1_000;
const MAX_BATCH_ITEMS = 256;

export interface LineOptions<I> {
  /** The most items of a call, if their results may be large. */
  maxItems?: number;
  /** The characters of an item or its result that is large. A call has `maxChars` of them at most, or one item. */
  charsOf?: (item: I) => number;
  maxChars?: number;
  /**
   * The owner of an item. With it, owners take turns: many items of one owner delay an item of another by one item
   * each. By default all items go in order.
   */
  ownerOf?: (item: I) => string;
}

export interface Waiting<I, O> {
  item: I;
  /** The time of the refusal, by performance.now(). */
  untilMs: number;
  /** Refused because its time was over. */
  refused: boolean;
  resolve: (result: O) => void;
  reject: (error: Error) => void;
}

/** The items that wait for a call, the oldest first: those whose time is over come first. */
export class WaitingLine<I, O> {
  private all: Waiting<I, O>[] = [];
  /** How many wait for each owner, in the order of their turns. Empty without `ownerOf`. */
  private readonly turns = new Map<string, number>();

  constructor(private readonly options: LineOptions<I>) {}

  get length(): number {
    return this.all.length;
  }

  /** No room for this item. */
  isFullFor(item: I): boolean {
    const { ownerOf } = this.options;
    if (this.all.length >= MAX_WAITING_ITEMS) return true;
    return ownerOf !== undefined && (this.turns.get(ownerOf(item)) ?? 0) >= MAX_WAITING_ITEMS_PER_OWNER;
  }

  push(waiting: Waiting<I, O>): void {
    const { ownerOf } = this.options;
    this.all.push(waiting);
    if (!ownerOf) return;
    // A new owner waits until the others have had their turns.
    const owner = ownerOf(waiting.item);
    this.turns.set(owner, (this.turns.get(owner) ?? 0) + 1);
  }

  /** Removes the items of the next call, in their order. At least one, if any waits. */
  takeBatch(): Waiting<I, O>[] {
    const { maxItems = MAX_BATCH_ITEMS, maxChars = MAX_BATCH_CHARS, charsOf, ownerOf } = this.options;
    if (ownerOf) return this.takeTurns(ownerOf);
    let count = Math.min(maxItems, this.all.length);
    if (charsOf) {
      let chars = 0;
      for (let n = 0; n < count; n++) {
        chars += charsOf(this.all[n]!.item);
        if (chars > maxChars) count = Math.max(1, n);
      }
    }
    return this.all.splice(0, count);
  }

  takeAll(): Waiting<I, O>[] {
    this.turns.clear();
    return this.all.splice(0);
  }

  /** Refuses and removes the items whose time is over. */
  refuseDue(): void {
    const { ownerOf } = this.options;
    const due = this.all.splice(0, refuseDue(this.all));
    if (!ownerOf) return;
    for (const { item } of due) {
      const owner = ownerOf(item);
      const left = this.turns.get(owner)! - 1;
      if (left > 0) this.turns.set(owner, left);
      else this.turns.delete(owner);
    }
  }

  private takeTurns(ownerOf: (item: I) => string): Waiting<I, O>[] {
    const { maxItems = MAX_BATCH_ITEMS, maxChars = MAX_BATCH_CHARS, charsOf = () => 0 } = this.options;
    const byOwner = new Map<string, Waiting<I, O>[]>();
    for (const waiting of this.all) {
      const own = byOwner.get(ownerOf(waiting.item));
      if (own) own.push(waiting);
      else byOwner.set(ownerOf(waiting.item), [waiting]);
    }
    const taken = new Set<Waiting<I, O>>();
    let chars = 0;
    while (taken.size < Math.min(maxItems, this.all.length)) {
      const owner = this.turns.keys().next().value!;
      const own = byOwner.get(owner)!;
      chars += charsOf(own[0]!.item);
      if (taken.size > 0 && chars > maxChars) break;
      taken.add(own.shift()!);
      // The next turn of the owner comes after the turns of the others.
      const left = this.turns.get(owner)! - 1;
      this.turns.delete(owner);
      if (left > 0) this.turns.set(owner, left);
    }
    const batch = this.all.filter((waiting) => taken.has(waiting));
    this.all = this.all.filter((waiting) => !taken.has(waiting));
    return batch;
  }
}

/** Refuses the items from `start` on whose time is over; they come first. Returns their number. */
export function refuseDue<I, O>(all: readonly Waiting<I, O>[], start = 0): number {
  const nowMs = performance.now();
  let end = start;
  for (; end < all.length && all[end]!.untilMs <= nowMs; end++) {
    all[end]!.refused = true;
    all[end]!.reject(new UnavailableError('the admission store has not answered in time'));
  }
  return end - start;
}
