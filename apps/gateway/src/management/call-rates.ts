import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/**
 * Limit of one token, at once or spread over the minute: far above the need of a person or a script. Each process
 * counts by itself, so n replicas allow n times as much.
 */
export const MANAGEMENT_REQUESTS_PER_MINUTE = 600;
const MINUTE_MS = 60_000;
const INTERVAL_MS = MINUTE_MS / MANAGEMENT_REQUESTS_PER_MINUTE;
/** A token that drops out of the cache starts with a full bucket. */
const MAX_TOKENS = 10_000;

/**
 * The request limit of the management API. A bucket for each token holds one minute of requests and refills evenly
 * (GCRA). It is in memory, because no money depends on it.
 */
@Injectable()
export class CallRates {
  /** When the bucket is full again. */
  private readonly fullAtMs = new LRUCache<string, number>({ max: MAX_TOKENS });

  /** Takes one request. Returns 0 if it is allowed, otherwise the milliseconds until the next one is. */
  take(tokenId: string, nowMs: number): number {
    const fullAtMs = Math.max(this.fullAtMs.get(tokenId) ?? 0, nowMs) + INTERVAL_MS;
    const waitMs = fullAtMs - nowMs - MINUTE_MS;
    if (waitMs > 0) return waitMs;
    this.fullAtMs.set(tokenId, fullAtMs);
    return 0;
  }
}
