import { Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { logger } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';

/** Limit of one token, at once or spread over the minute: far above the need of a person or a script. */
export const MANAGEMENT_REQUESTS_PER_MINUTE = 600;
const MINUTE_MS = 60_000;
const INTERVAL_MS = MINUTE_MS / MANAGEMENT_REQUESTS_PER_MINUTE;
/** A token that drops out of the cache starts with a full bucket. */
const MAX_TOKENS = 10_000;

/**
 * The request limit of the management API, over all processes: the admission store has a bucket for each token, which
 * holds one minute of requests and refills evenly (GCRA). Each process has buckets of its own in front. They spare the
 * store the calls of a token that is far beyond its limit, and are the limit while the store does not answer: no money
 * depends on it.
 */
@Injectable()
export class CallRates {
  /** When the bucket is full again. */
  private readonly fullAtMs = new LRUCache<string, number>({ max: MAX_TOKENS });
  private storeAnswers = true;

  constructor(private readonly store: AdmissionStore) {}

  /** Takes one request. Returns 0 if it is allowed, otherwise the milliseconds until the next one is. Never rejects. */
  async take({ id, tenantId }: { id: string; tenantId: string }, nowMs: number): Promise<number> {
    const ownMs = this.takeOwn(id, nowMs);
    if (ownMs > 0) return ownMs;
    try {
      const waitMs = await this.store.takeCall({ tenantId, tokenId: id, perMinute: MANAGEMENT_REQUESTS_PER_MINUTE });
      this.storeAnswers = true;
      return waitMs;
    } catch (error) {
      // Once, because every call would log it while the store is unavailable.
      if (this.storeAnswers)
        logger('gateway').warn({ reason: (error as Error).message }, 'each process limits management tokens by itself');
      this.storeAnswers = false;
      return 0;
    }
  }

  private takeOwn(tokenId: string, nowMs: number): number {
    const knownMs = Math.max(this.fullAtMs.get(tokenId) ?? 0, nowMs);
    // An empty bucket is full in a minute, so the clock was set back. The bucket fills from now on.
    if (knownMs > nowMs + MINUTE_MS) {
      this.fullAtMs.set(tokenId, nowMs + MINUTE_MS);
      return INTERVAL_MS;
    }
    const fullAtMs = knownMs + INTERVAL_MS;
    const waitMs = fullAtMs - nowMs - MINUTE_MS;
    if (waitMs > 0) return waitMs;
    this.fullAtMs.set(tokenId, fullAtMs);
    return 0;
  }
}
