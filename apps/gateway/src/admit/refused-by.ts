import type { Limits, LimitState, Refusal } from '@tollgate/admission';
import type { RefusedBy } from '@tollgate/contracts';

/**
 * The refusals that an explanation knows. A claim belongs to another request, and after a refused bound the request is
 * tried again.
 */
type Explained = Exclude<Refusal, 'bound' | 'claimed'>;

const WHAT: Record<Explained, RefusedBy['what']> = {
  tenant_suspended: 'suspended',
  requests: 'requests',
  tokens: 'tokens',
  concurrency: 'concurrency',
  budget_reached: 'budget',
  credit_exhausted: 'credit',
  credit_held: 'held',
};

/** A refusal by the admission store. */
export interface AdmissionRefusal {
  readonly reason: Exclude<Refusal, 'bound'>;
  readonly scope: 'key' | 'tenant';
  readonly retryAfterMs: number | null;
  readonly limits: LimitState;
  /** The tokens that the request needed. Absent: its body was not read. */
  readonly needs?: number;
}

/** What refused the request, with the limit as it was, and until when. Undefined: another request has its claim. */
export function refusedBy(
  { reason, scope, retryAfterMs, limits, needs }: AdmissionRefusal,
  { keyLimits, tenantLimits }: { keyLimits: Limits; tenantLimits: Limits },
  nowMs: number,
): RefusedBy | undefined {
  if (reason === 'claimed') return undefined;
  const what = WHAT[reason];
  const untilMs =
    reason === 'budget_reached' ? nextMonthMs(nowMs) : retryAfterMs === null ? null : nowMs + retryAfterMs;
  const until = untilMs === null ? {} : { until: new Date(untilMs).toISOString() };
  const { requestsPerMinute, tokensPerMinute, concurrency } = scope === 'key' ? keyLimits : tenantLimits;
  const left = scope === 'key' ? limits : limits.tenant;
  switch (reason) {
    case 'requests':
      return { what, scope, limit: requestsPerMinute, remaining: left.requestsRemaining, ...until };
    case 'tokens':
      return {
        what,
        scope,
        limit: tokensPerMinute,
        remaining: left.tokensRemaining,
        ...(needs !== undefined && { needs }),
        ...until,
      };
    case 'concurrency':
      return { what, scope, limit: concurrency, ...until };
    case 'budget_reached':
      return { what, scope, ...until };
    case 'credit_held':
      return { what, scope, ...(needs !== undefined && { needs }), ...until };
    case 'credit_exhausted':
    case 'tenant_suspended':
      return { what, ...(reason === 'credit_exhausted' && needs !== undefined && { needs }) };
  }
}

/** Budgets start again with the calendar month (UTC). */
export function nextMonthMs(nowMs: number): number {
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
}
