import { LimitStates, nearestLimits } from './limit-states';

const keyLimits = { requestsPerMinute: 60, tokensPerMinute: 6_000, concurrency: 1 };
const tenantLimits = { requestsPerMinute: 100, tokensPerMinute: 10_000, concurrency: 1 };
const owner = { keyId: 'key_a', tenantId: 'ten_a', keyLimits, tenantLimits };
const FULL = { requestsRemaining: 60, requestsResetMs: 0, tokensRemaining: 6_000, tokensResetMs: 0 };
const TENANTS = { requestsRemaining: 100, requestsResetMs: 0, tokensRemaining: 10_000, tokensResetMs: 0 };

it('the last known state of a limit refills evenly, up to the limit', () => {
  const states = new LimitStates();
  expect(states.now(owner, 0)).toEqual({ ...FULL, tenant: TENANTS });
  const spent = { requestsRemaining: 10, requestsResetMs: 50_000, tokensRemaining: 0, tokensResetMs: 60_000 };
  states.note(owner, { ...spent, tenant: spent }, 1_000);
  expect(states.now(owner, 1_000)).toEqual({ ...spent, tenant: spent });
  expect(states.now(owner, 31_000)).toEqual({
    requestsRemaining: 40,
    requestsResetMs: 20_000,
    tokensRemaining: 3_000,
    tokensResetMs: 30_000,
    tenant: { requestsRemaining: 60, requestsResetMs: 20_000, tokensRemaining: 5_000, tokensResetMs: 30_000 },
  });
  expect(states.now(owner, 600_000)).toEqual({ ...FULL, tenant: TENANTS });
  // Another key of the tenant knows the state of the tenant.
  const other = states.now({ ...owner, keyId: 'key_b' }, 1_000);
  expect(other).toEqual({ ...FULL, tenant: spent });
});

it('an answer shows the limit that would refuse first, separately for requests and tokens', () => {
  const tenant = { requestsRemaining: 5, requestsResetMs: 57_000, tokensRemaining: 9_000, tokensResetMs: 6_000 };
  expect(nearestLimits(owner, { ...FULL, tenant })).toEqual({
    requests: { limit: 100, remaining: 5, resetMs: 57_000, scope: 'account' },
    tokens: { limit: 6_000, remaining: 6_000, resetMs: 0, scope: 'key' },
  });
  const both = { requestsRemaining: 0, requestsResetMs: 60_000, tokensRemaining: 0, tokensResetMs: 60_000 };
  const { requests, tokens } = nearestLimits(owner, { ...both, tenant: { ...both, tokensResetMs: 60_001 } });
  expect([requests.scope, tokens.scope]).toEqual(['key', 'account']);
});
