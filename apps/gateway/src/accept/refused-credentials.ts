import { logger, networkOf } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';

const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 1_000;

export interface AttemptLimits {
  /** The component that the log names. */
  component: string;
  /** What is wrong, in the log. */
  credential: string;
  /**
   * Wrong credentials of one address that are checked in a minute. After that its credentials are not checked until the
   * minute is over, unless a right one came from it before.
   */
  maxOfAddress: number;
  /**
   * Wrong credentials of all addresses in a minute. After that each address has one try, so that many addresses do not
   * give many guesses.
   */
  maxOfAll: number;
}

interface Window {
  count: number;
  endsMs: number;
}

/**
 * Counts wrong credentials by remote address (IPv6: by /64). An address guesses only `maxOfAddress` times a minute,
 * unless it sent a right credential before, as a load balancer does. Then its credentials are still checked, so that
 * one client does not lock out the others, and only its wrong ones must wait.
 */
export class RefusedCredentials {
  private readonly failed = new LRUCache<string, Window>({ max: MAX_ADDRESSES });
  private readonly trusted = new LRUCache<string, true>({ max: MAX_ADDRESSES });
  private all: Window = { count: 0, endsMs: 0 };

  constructor(
    private readonly limits: AttemptLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** No address has ever sent a wrong one. */
  get isEmpty(): boolean {
    return this.failed.size === 0;
  }

  /** Milliseconds until a credential of this address is checked again. 0: now. */
  waitMs(address: string): number {
    const now = this.nowMs();
    const own = this.failed.peek(networkOf(address));
    if (!own || own.endsMs <= now) return 0;
    const allFull = this.all.endsMs > now && this.all.count >= this.limits.maxOfAll;
    return own.count >= this.limits.maxOfAddress || allFull ? own.endsMs - now : 0;
  }

  /** A look renews the entry, so among many addresses those in use stay known. */
  isTrusted(address: string): boolean {
    return this.trusted.get(networkOf(address)) === true;
  }

  trust(address: string): void {
    this.trusted.set(networkOf(address), true);
  }

  /**
   * Counts a wrong credential. Logs the first of an address in a minute, and the one that reaches a limit. Never logs
   * the credential itself.
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
    const { component, credential, maxOfAddress, maxOfAll } = this.limits;
    if (failures === maxOfAddress || this.all.count === maxOfAll)
      logger(component).warn(
        { address, failures, ofAll: this.all.count },
        `too many requests with a wrong ${credential}: further ones are refused for the rest of the minute`,
      );
    else if (failures === 1 && this.all.count < maxOfAll)
      logger(component).warn({ address, failures }, `a request had a wrong ${credential}`);
  }
}

function running(window: Window | undefined, now: number): Window {
  return window && window.endsMs > now ? window : { count: 0, endsMs: now + WINDOW_MS };
}
