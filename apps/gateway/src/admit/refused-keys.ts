import { LRUCache } from 'lru-cache';

const MAX_KEYS = 10_000;
/** A key that is silent for so long is read once more without a look. */
const REMEMBERED_MS = 10_000;

/**
 * Keys that admission refused lately, for a limit or for money: their next requests are looked at before their bodies
 * are read, however small, until one is clear. It only says who is looked at: what is refused the store says each time,
 * so a top-up is in force at once.
 */
export class RefusedKeys {
  private readonly refused = new LRUCache<string, true>({ max: MAX_KEYS, ttl: REMEMBERED_MS });

  has(keyId: string): boolean {
    return this.refused.has(keyId);
  }

  wasRefused(keyId: string): void {
    this.refused.set(keyId, true);
  }

  wasClear(keyId: string): void {
    this.refused.delete(keyId);
  }
}
