import { refusedBy, type AdmissionRefusal } from './refused-by';

const NOW = Date.parse('2026-11-24T10:00:00.000Z');
const limits = { requestsPerMinute: 600, tokensPerMinute: 1_000, concurrency: 64 };
const under = {
  keyLimits: limits,
  tenantLimits: { requestsPerMinute: 6_000, tokensPerMinute: 9_000, concurrency: 512 },
};
const left = { requestsRemaining: 3, requestsResetMs: 0, tokensRemaining: 40, tokensResetMs: 0 };
const refusal = (changes: Partial<AdmissionRefusal>): AdmissionRefusal => ({
  reason: 'requests',
  scope: 'key',
  retryAfterMs: 2_000,
  limits: { ...left, tenant: { ...left, requestsRemaining: 0, tokensRemaining: 7 } },
  ...changes,
});
const until = '2026-11-24T10:00:02.000Z';

describe('what refused a request', () => {
  it.each<[Partial<AdmissionRefusal>, object | undefined]>([
    [{}, { what: 'requests', scope: 'key', limit: 600, remaining: 3, until }],
    [{ scope: 'tenant' }, { what: 'requests', scope: 'tenant', limit: 6_000, remaining: 0, until }],
    [
      { reason: 'tokens', needs: 500 },
      { what: 'tokens', scope: 'key', limit: 1_000, remaining: 40, needs: 500, until },
    ],
    [
      { reason: 'tokens', scope: 'tenant', retryAfterMs: null },
      { what: 'tokens', scope: 'tenant', limit: 9_000, remaining: 7 },
    ],
    [{ reason: 'concurrency' }, { what: 'concurrency', scope: 'key', limit: 64, until }],
    [
      { reason: 'budget_reached', retryAfterMs: null },
      { what: 'budget', scope: 'key', until: '2026-12-01T00:00:00.000Z' },
    ],
    [
      { reason: 'credit_exhausted', scope: 'tenant', retryAfterMs: null, needs: 9 },
      { what: 'credit', needs: 9 },
    ],
    [
      { reason: 'credit_held', scope: 'tenant', needs: 9 },
      { what: 'held', scope: 'tenant', needs: 9, until },
    ],
    [{ reason: 'tenant_suspended', scope: 'tenant', retryAfterMs: null }, { what: 'suspended' }],
    [{ reason: 'claimed' }, undefined],
  ])('%j is reported with the limit as it was, and with the time until which it applies', (changes, expected) => {
    expect(refusedBy(refusal(changes), under, NOW)).toEqual(expected);
  });

  it('in December is a budget until January', () => {
    const december = Date.parse('2026-12-31T23:59:59.999Z');
    expect(refusedBy(refusal({ reason: 'budget_reached' }), under, december)?.until).toBe('2027-01-01T00:00:00.000Z');
  });
});
