import { networkOf } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';
import { ConsoleError } from '../http/errors';

/** Tries of one address or person in a minute. */
const MAX_TRIES = 20;
const MINUTE_MS = 60_000;
const MAX_CALLERS = 10_000;

/**
 * Limits calls that guess or that send mail, by address (IPv6: by /64) or person. In memory: each process counts by
 * itself.
 */
export class Tries {
  private readonly used: LRUCache<string, { count: number }>;

  /** `message`: what a person without tries left can do. */
  constructor(
    private readonly max = MAX_TRIES,
    windowMs = MINUTE_MS,
    private readonly message?: string,
  ) {
    this.used = new LRUCache({ max: MAX_CALLERS, ttl: windowMs });
  }

  /** Error: rate_limited. */
  take(caller: string): void {
    const counted = networkOf(caller);
    const used = this.used.get(counted);
    if (!used) this.used.set(counted, { count: 1 });
    else if (used.count < this.max) used.count++;
    else {
      const waitS = Math.ceil(this.used.getRemainingTTL(counted) / 1_000);
      throw new ConsoleError('rate_limited', this.message, { 'retry-after': String(Math.max(1, waitS)) });
    }
  }

  /** A try that was taken does not count. It takes no place either, which would push out the count of another. */
  giveBack(caller: string): void {
    const counted = networkOf(caller);
    const used = this.used.get(counted);
    if (used && --used.count === 0) this.used.delete(counted);
  }
}
