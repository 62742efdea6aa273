import type { BucketState, Limits, LimitState } from '@tollgate/admission';
import { LRUCache } from 'lru-cache';

const MAX_OWNERS = 20_000;
const MINUTE_MS = 60_000;

/** The owners of limits: a key and its tenant. */
export interface Limited {
  readonly keyId: string;
  readonly tenantId: string;
  readonly keyLimits: Limits;
  readonly tenantLimits: Limits;
}

/** A limit as an answer shows it. */
export interface ShownLimit {
  /** Per minute. */
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly scope: 'key' | 'account';
}

/** The limit that would refuse first: the key's or its tenant's. */
export interface ShownLimits {
  readonly requests: ShownLimit;
  readonly tokens: ShownLimit;
}

/** Chooses what an answer shows. */
export function nearestLimits({ keyLimits, tenantLimits }: Limited, state: LimitState): ShownLimits {
  const { tenant } = state;
  return {
    requests: nearer(
      { limit: keyLimits.requestsPerMinute, remaining: state.requestsRemaining, resetMs: state.requestsResetMs },
      { limit: tenantLimits.requestsPerMinute, remaining: tenant.requestsRemaining, resetMs: tenant.requestsResetMs },
    ),
    tokens: nearer(
      { limit: keyLimits.tokensPerMinute, remaining: state.tokensRemaining, resetMs: state.tokensResetMs },
      { limit: tenantLimits.tokensPerMinute, remaining: tenant.tokensRemaining, resetMs: tenant.tokensResetMs },
    ),
  };
}

/** The limit with less left; of two with nothing left, the one that takes longer to fill. */
function nearer(ofKey: Omit<ShownLimit, 'scope'>, ofTenant: Omit<ShownLimit, 'scope'>): ShownLimit {
  const isTenants =
    ofTenant.remaining < ofKey.remaining ||
    (ofTenant.remaining === ofKey.remaining && ofTenant.resetMs > ofKey.resetMs);
  return isTenants ? { ...ofTenant, scope: 'account' } : { ...ofKey, scope: 'key' };
}

/**
 * The present state of the limits of keys and tenants, computed from their last known state in this process: buckets
 * refill evenly within a minute. It fills the rate-limit headers of answers that take nothing from the limits. A key or
 * a tenant without a known state has full buckets.
 */
export class LimitStates {
  private readonly states = new LRUCache<string, BucketState & { atMs: number }>({ max: MAX_OWNERS });

  note(
    { keyId, tenantId }: Pick<Limited, 'keyId' | 'tenantId'>,
    { tenant, ...ofKey }: LimitState,
    nowMs: number,
  ): void {
    this.states.set(keyId, { ...ofKey, atMs: nowMs });
    this.states.set(tenantId, { ...tenant, atMs: nowMs });
  }

  now({ keyId, tenantId, keyLimits, tenantLimits }: Limited, nowMs: number): LimitState {
    return { ...this.stateOf(keyId, keyLimits, nowMs), tenant: this.stateOf(tenantId, tenantLimits, nowMs) };
  }

  private stateOf(id: string, limits: Limits, nowMs: number): BucketState {
    const last = this.states.get(id);
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
