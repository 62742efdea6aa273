import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/**
 * Of one token, at once or evenly: far above what a person or a script needs. In this process: with several replicas it
 * is as many times as much.
 */
export const MANAGEMENT_REQUESTS_PER_MINUTE = 600;
const MINUTE_MS = 60_000;
const INTERVAL_MS = MINUTE_MS / MANAGEMENT_REQUESTS_PER_MINUTE;
/** A token that is forgotten begins with a whole minute's worth again. */
const MAX_TOKENS = 10_000;

/**
 * The management API's limit of requests: a bucket of a minute's worth a token, refilled evenly (GCRA). No money hangs
 * on it, so memory is enough.
 */
@Injectable()
export class CallRates {
  /** When the bucket is full again. */
  private readonly fullAtMs = new LRUCache<string, number>({ max: MAX_TOKENS });

  /** Takes one request: 0, or the milliseconds to wait for the next that is allowed. */
  take(tokenId: string, nowMs: number): number {
    const fullAtMs = Math.max(this.fullAtMs.get(tokenId) ?? 0, nowMs) + INTERVAL_MS;
    const waitMs = fullAtMs - nowMs - MINUTE_MS;
    if (waitMs > 0) return waitMs;
    this.fullAtMs.set(tokenId, fullAtMs);
    return 0;
  }
}
