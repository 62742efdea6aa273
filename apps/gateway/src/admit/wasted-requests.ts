import { LRUCache } from 'lru-cache';

const MINUTE_MS = 60_000;
/** The least that a key with a lower request limit gets. */
const LEAST_PER_MINUTE = 60;
/** Each full 64 KiB of a body count as one more request. */
const BYTES_PER_REQUEST = 64 * 1024;
/** The most that a key can owe, so that its wait stays about a minute. */
const MAX_OWED_MS = 2 * MINUTE_MS;
/** A key that drops out of the cache starts with a full bucket. */
const MAX_KEYS = 10_000;

/**
 * Limits requests that were wasted and that no other limit counts: invalid ones, those that did not arrive, repeats of
 * an Idempotency-Key, and large bodies that were read before a refusal. A bucket for each key holds one minute of its
 * request limit and refills evenly (GCRA). A large body counts as several requests. A request is counted when it is
 * over, so the limit is checked before the next one is read. The buckets are in this process, because no money depends
 * on them.
 */
export class WastedRequests {
  /** When the bucket is full again. */
  private readonly fullAtMs = new LRUCache<string, number>({ max: MAX_KEYS });

  /** Milliseconds until a body of the key is read again. 0: now. */
  waitMs(keyId: string, requestsPerMinute: number, nowMs: number): number {
    const fullAtMs = this.fullAtMs.get(keyId);
    if (fullAtMs === undefined) return 0;
    const latestMs = nowMs + MAX_OWED_MS;
    // The clock was set back. The bucket fills from now on. Otherwise each look would start it again.
    if (fullAtMs > latestMs) this.fullAtMs.set(keyId, latestMs);
    return Math.max(0, Math.min(fullAtMs, latestMs) + intervalMs(requestsPerMinute) - nowMs - MINUTE_MS);
  }

  /** A request that was invalid or did not arrive. `bytes`: what was read of its body or reserved for it. */
  countInvalid(keyId: string, requestsPerMinute: number, bytes: number, nowMs: number): void {
    this.count(keyId, requestsPerMinute, 1 + Math.floor(bytes / BYTES_PER_REQUEST), nowMs);
  }

  /** A request that was refused for a limit or for its price after its body was read. A small body does not count. */
  countUnserved(keyId: string, requestsPerMinute: number, bytes: number, nowMs: number): void {
    this.count(keyId, requestsPerMinute, Math.floor(bytes / BYTES_PER_REQUEST), nowMs);
  }

  private count(keyId: string, requestsPerMinute: number, requests: number, nowMs: number): void {
    if (requests === 0) return;
    // One request takes at most the whole bucket, so one mistake does not lock the key out.
    const byMs = Math.min(requests * intervalMs(requestsPerMinute), MINUTE_MS);
    const fullAtMs = Math.max(this.fullAtMs.get(keyId) ?? 0, nowMs) + byMs;
    this.fullAtMs.set(keyId, Math.min(fullAtMs, nowMs + MAX_OWED_MS));
  }
}

function intervalMs(requestsPerMinute: number): number {
  return MINUTE_MS / Math.max(LEAST_PER_MINUTE, requestsPerMinute);
}
