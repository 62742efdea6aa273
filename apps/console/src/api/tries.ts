import { LRUCache } from 'lru-cache';
import { ConsoleError } from '../http/errors';

/** Tries of one address in a minute. */
const MAX_TRIES = 20;
const MINUTE_MS = 60_000;
const MAX_ADDRESSES = 10_000;

/** Limits calls of people who are not signed in, by their address. In memory: each process counts by itself. */
export class Tries {
  private readonly used = new LRUCache<string, { count: number }>({ max: MAX_ADDRESSES, ttl: MINUTE_MS });

  /** Error: rate_limited. */
  take(address: string): void {
    const used = this.used.get(address);
    if (!used) this.used.set(address, { count: 1 });
    else if (++used.count > MAX_TRIES) {
      const waitS = Math.ceil(this.used.getRemainingTTL(address) / 1_000);
      throw new ConsoleError('rate_limited', undefined, { 'retry-after': String(Math.max(1, waitS)) });
    }
  }
}
