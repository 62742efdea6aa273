import { LRUCache } from 'lru-cache';

const MAX_KEYS = 10_000;
/** After this time without a refusal, the next small body is read without a look. */
const REMEMBERED_MS = 10_000;

/**
 * Keys that admission refused lately, for a limit or for lack of credit. The bodies of their next requests are read
 * only after a look, even small ones, until a look is clear. The store still decides each refusal, so a top-up takes
 * effect at once.
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
