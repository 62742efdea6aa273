import { LRUCache } from 'lru-cache';

const MINUTE_MS = 60_000;
/** Of a key whose own limit of requests is lower. */
const LEAST_PER_MINUTE = 60;
/** A body of so many bytes counts as a request more. */
const BYTES_PER_REQUEST = 64 * 1024;
/** What came at once is owed to this point, and nobody waits longer than a minute. */
const MAX_OWED_MS = 2 * MINUTE_MS;
/** A key that is forgotten begins with a whole minute's worth again. */
const MAX_KEYS = 10_000;

/**
 * The limit of requests that came to nothing and that no other limit counts: those that are invalid or did not arrive,
 * and bodies that were read for a refusal. A bucket a key of a minute's worth, refilled evenly (GCRA), as many as the
 * key may send requests; large bodies weigh more. Counted when it is over, so asked for before the next body is read.
 * In this process, as no money hangs on it.
 */
export class WastedRequests {
  /** When the bucket is full again. */
  private readonly fullAtMs = new LRUCache<string, number>({ max: MAX_KEYS });

  /** Milliseconds until a request of the key is read again; 0: now. */
  waitMs(keyId: string, requestsPerMinute: number, nowMs: number): number {
    const fullAtMs = this.fullAtMs.get(keyId);
    if (fullAtMs === undefined) return 0;
    return Math.max(0, Math.min(fullAtMs, nowMs + MAX_OWED_MS) + intervalMs(requestsPerMinute) - nowMs - MINUTE_MS);
  }

  /**
   * A request that was refused for what it is, or did not arrive. `bytes`: what was read of it, or kept free for it.
   */
  countInvalid(keyId: string, requestsPerMinute: number, bytes: number, nowMs: number): void {
    this.count(keyId, requestsPerMinute, 1 + Math.floor(bytes / BYTES_PER_REQUEST), nowMs);
  }

  /** A request that a limit or its price refused after its body was read: a small one costs nothing. */
  countUnserved(keyId: string, requestsPerMinute: number, bytes: number, nowMs: number): void {
    this.count(keyId, requestsPerMinute, Math.floor(bytes / BYTES_PER_REQUEST), nowMs);
  }

  private count(keyId: string, requestsPerMinute: number, requests: number, nowMs: number): void {
    if (requests === 0) return;
    // More than the whole bucket counts as the whole bucket: one mistake does not shut a key out.
    const byMs = Math.min(requests * intervalMs(requestsPerMinute), MINUTE_MS);
    const fullAtMs = Math.max(this.fullAtMs.get(keyId) ?? 0, nowMs) + byMs;
    this.fullAtMs.set(keyId, Math.min(fullAtMs, nowMs + MAX_OWED_MS));
  }
}

function intervalMs(requestsPerMinute: number): number {
  return MINUTE_MS / Math.max(LEAST_PER_MINUTE, requestsPerMinute);
}
