import { logger } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';
import { isIPv6 } from 'node:net';

const WINDOW_MS = 60_000;
/**
 * Of one address in a minute; then none of its secrets is looked at until the minute is over, unless the right one came
 * from there before.
 */
const MAX_OF_ADDRESS = 10;
/** Of all addresses in a minute; then each address has one try, as with many addresses a guess would be many. */
const MAX_OF_ALL = 200;
const MAX_ADDRESSES = 1_000;

interface Window {
  count: number;
  endsMs: number;
}

/**
 * Wrong operator secrets, by remote address (of IPv6 by its /64). Whoever had the right one from an address goes on,
 * whatever else comes from there, such as through a load balancer; a wrong one is refused as too many there, too. So
 * nobody is locked out by the failures of another address, and who guesses is slowed to MAX_OF_ADDRESS a minute.
 */
export class RefusedSecrets {
  private readonly failed = new LRUCache<string, Window>({ max: MAX_ADDRESSES });
  private readonly trusted = new LRUCache<string, true>({ max: MAX_ADDRESSES });
  private all: Window = { count: 0, endsMs: 0 };

  constructor(private readonly nowMs: () => number = () => performance.now()) {}

  /** Milliseconds for which no wrong secret of this address is heard; 0: it may try. */
  waitMs(address: string): number {
    const now = this.nowMs();
    const own = this.failed.peek(networkOf(address));
    if (!own || own.endsMs <= now) return 0;
    const allFull = this.all.endsMs > now && this.all.count >= MAX_OF_ALL;
    return own.count >= MAX_OF_ADDRESS || allFull ? own.endsMs - now : 0;
  }

  isTrusted(address: string): boolean {
    return this.trusted.has(networkOf(address));
  }

  trust(address: string): void {
    this.trusted.set(networkOf(address), true);
  }

  /**
   * Counts a wrong one. Logged are the first of an address in a minute and the one that is the last to be heard, never
   * what was sent.
   */
  add(address: string): void {
    const now = this.nowMs();
    const network = networkOf(address);
    const own = running(this.failed.get(network), now);
    this.all = running(this.all, now);
    own.count++;
    this.all.count++;
    this.failed.set(network, own);
    const failures = own.count;
    if (failures === MAX_OF_ADDRESS || this.all.count === MAX_OF_ALL)
      logger('operator').warn(
        { address, failures, ofAll: this.all.count },
        'too many wrong operator secrets: refused for the rest of the minute',
      );
    else if (failures === 1 && this.all.count < MAX_OF_ALL)
      logger('operator').warn({ address, failures }, 'a wrong operator secret');
  }
}

function running(window: Window | undefined, now: number): Window {
  return window && window.endsMs > now ? window : { count: 0, endsMs: now + WINDOW_MS };
}

/** Who has one address of a /64 has all of them. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.toLowerCase().split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  return [...before, ...new Array<string>(zeros).fill('0'), ...after].slice(0, 4).join(':');
}
