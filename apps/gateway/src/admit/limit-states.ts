import type { Limits, LimitState } from '@tollgate/admission';
import { LRUCache } from 'lru-cache';

const MAX_KEYS = 10_000;
const MINUTE_MS = 60_000;

/**
 * The present state of the limits of keys, computed from their last known state in this process: buckets refill evenly
 * within a minute. It fills the rate-limit headers of answers that take nothing from the limits. A key without a known
 * state has full buckets.
 */
export class LimitStates {
  private readonly states = new LRUCache<string, LimitState & { atMs: number }>({ max: MAX_KEYS });

  note(keyId: string, state: LimitState, nowMs: number): void {
    this.states.set(keyId, { ...state, atMs: nowMs });
  }

  now(keyId: string, limits: Limits, nowMs: number): LimitState {
    const last = this.states.get(keyId);
    const sinceMs = last ? Math.max(0, nowMs - last.atMs) : MINUTE_MS;
    const { requestsPerMinute, tokensPerMinute } = limits;
    const refilled = (remaining: number | undefined, perMinute: number) =>
      Math.min(perMinute, (remaining ?? perMinute) + Math.floor((perMinute * sinceMs) / MINUTE_MS));
    return {
      requestsRemaining: refilled(last?.requestsRemaining, requestsPerMinute),
      requestsResetMs: Math.max(0, (last?.requestsResetMs ?? 0) - sinceMs),
      tokensRemaining: refilled(last?.tokensRemaining, tokensPerMinute),
      tokensResetMs: Math.max(0, (last?.tokensResetMs ?? 0) - sinceMs),
    };
  }
}
