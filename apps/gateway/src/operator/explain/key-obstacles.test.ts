import type { LookResult } from '@tollgate/admission';
import { budgetInForce, obstaclesOf, type KeyState } from './key-obstacles';

const NOW = Date.parse('2026-11-24T10:00:00.000Z');
const until = '2026-12-01T00:00:00.000Z';
const limits = { requestsPerMinute: 600, tokensPerMinute: 1_000, concurrency: 64 };
const left = { requestsRemaining: 600, requestsResetMs: 0, tokensRemaining: 1_000, tokensResetMs: 0 };
const budget = { monthlyBudgetCents: null, setBy: 'configuration', spentNanos: '0' } as const;
const admission = {
  settledNanos: '0',
  heldNanos: '0',
  runningRequests: 0,
  spendableNanos: '10',
  availableNanos: '10',
};
const clear: LookResult = { kind: 'clear', limits: { ...left, tenant: left } };
/** A key that nothing stands in the way of. */
const free = {
  key: { status: 'active' },
  tenant: { status: 'active' },
  rights: { keyLimits: limits, tenantLimits: { ...limits, requestsPerMinute: 6_000 }, models: null },
  models: ['sim-small'],
  isPaid: true,
  budgets: { key: budget, tenant: budget },
  credit: { balanceCents: 1, unpostedNanos: '0', admission },
  look: clear,
} as unknown as KeyState;
const refused = (reason: string, scope: 'key' | 'tenant', retryAfterMs: number | null) =>
  ({ ...clear, kind: 'refused', reason, scope, retryAfterMs }) as LookResult;
const spent = { monthlyBudgetCents: 5, setBy: 'operator', spentNanos: '50000000' } as const;

describe('what stands in the way of a key', () => {
  it.each<[string, Partial<KeyState>, object[]]>([
    ['nothing', {}, []],
    ['its own status', { key: { ...free.key, status: 'revoked' } }, [{ what: 'key_revoked' }]],
    ['its end', { key: { ...free.key, status: 'expired' } }, [{ what: 'key_expired' }]],
    ['its tenant', { tenant: { ...free.tenant, status: 'closed' } }, [{ what: 'suspended' }]],
    ['its profile', { rights: null, look: null }, [{ what: 'no_profile' }]],
    ['its models', { models: [] }, [{ what: 'no_models' }]],
    [
      'requests at once',
      { look: refused('concurrency', 'key', 2_000) },
      [{ what: 'concurrency', scope: 'key', limit: 64, until: '2026-11-24T10:00:02.000Z' }],
    ],
    [
      'two limits, of which the store names the first',
      {
        look: {
          ...refused('requests', 'key', 100),
          limits: { ...left, requestsRemaining: 0, tenant: { ...left, tokensRemaining: 0 } },
        },
      },
      [
        { what: 'requests', scope: 'key', limit: 600, remaining: 0, until: '2026-11-24T10:00:00.100Z' },
        { what: 'tokens', scope: 'tenant', limit: 1_000, remaining: 0 },
      ],
    ],
    [
      'both budgets',
      { budgets: { key: spent, tenant: spent } },
      [
        { what: 'budget', scope: 'key', until },
        { what: 'budget', scope: 'tenant', until },
      ],
    ],
    ['credit', { credit: { ...free.credit, admission: { ...admission, spendableNanos: '0' } } }, [{ what: 'credit' }]],
    [
      'holds',
      { credit: { ...free.credit, admission: { ...admission, availableNanos: '0' } } },
      [{ what: 'held', scope: 'tenant' }],
    ],
    ['nothing, if all models are free', { isPaid: false, budgets: { key: spent, tenant: spent } }, []],
    ['nothing known, while the store does not answer', { look: null, credit: { ...free.credit, admission: null } }, []],
  ])('is %s', (_, changes, expected) => {
    expect(obstaclesOf({ ...free, ...changes }, NOW)).toEqual(expected);
  });

  it('is a budget of the operator before one of the configuration', () => {
    const state = { spentNanos: '7' } as Parameters<typeof budgetInForce>[0];
    const ofConfiguration = 50_000_000n;
    const answers = (['default', 'none', 9] as const).map((budgetCents) =>
      budgetInForce({ ...state, budgetCents }, ofConfiguration),
    );
    expect(answers).toEqual([
      { monthlyBudgetCents: 5, setBy: 'configuration', spentNanos: '7' },
      { monthlyBudgetCents: null, setBy: 'operator', spentNanos: '7' },
      { monthlyBudgetCents: 9, setBy: 'operator', spentNanos: '7' },
    ]);
  });
});
