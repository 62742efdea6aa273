import { newId } from '@tollgate/contracts';
import type { AdmitResult } from '../admission-store';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

/** Requests, tokens and concurrency, for key and tenant. */
export function limitsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(10n ** 15n));

  const kinds = (results: readonly (AdmitResult | RangeError)[]) =>
    results.map((result) =>
      result instanceof Error ? 'error' : result.kind === 'held' ? 'held' : `${result.reason}/${result.scope}`,
    );

  it.each([1, 7, 60, 997])(
    'admits a burst up to %i requests a minute at once, and refuses the next request',
    async (limit) => {
      const f = fixture();
      const keyLimits = { ...WIDE, requestsPerMinute: limit };
      const results = await f.store.admit(Array.from({ length: limit + 1 }, () => f.request({ keyLimits })));
      expect(kinds(results)).toEqual([...Array.from({ length: limit }, () => 'held'), 'requests/key']);
    },
  );

  it('gives the exact wait of a request limit: refused a millisecond before, admitted after it', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, requestsPerMinute: 7 };
    for (let i = 0; i < 7; i++) await f.hold({ keyLimits });
    const refused = await f.admit(f.request({ keyLimits }));
    expect(refused).toMatchObject({ kind: 'refused', reason: 'requests', scope: 'key', retryAfterMs: 8572 });
    f.nowMs += 8571;
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ kind: 'refused', retryAfterMs: 1 });
    f.nowMs += 1;
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ kind: 'held' });
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ kind: 'refused' });
  });

  it('admits the steady rate after the burst, and never keeps more than one minute in a full bucket', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, requestsPerMinute: 60 };
    await f.store.admit(Array.from({ length: 60 }, () => f.request({ keyLimits })));
    for (let second = 0; second < 5; second++) {
      f.nowMs += 1_000;
      expect(kinds(await f.store.admit([f.request({ keyLimits }), f.request({ keyLimits })]))).toEqual([
        'held',
        'requests/key',
      ]);
    }
    f.nowMs += 3_600_000;
    expect(
      kinds(await f.store.admit(Array.from({ length: 62 }, () => f.request({ keyLimits })))).filter(
        (kind) => kind === 'held',
      ),
    ).toHaveLength(60);
  });

  it("applies the tenant's limits over all its keys, and reports the key's first", async () => {
    const f = fixture();
    const tenantLimits = { ...WIDE, requestsPerMinute: 3 };
    const keyLimits = { ...WIDE, requestsPerMinute: 2 };
    const [first, second] = [newId('key'), newId('key')];
    const results = await f.store.admit(
      [first, first, first, second, second].map((keyId) => f.request({ keyId, keyLimits, tenantLimits })),
    );
    expect(kinds(results)).toEqual(['held', 'held', 'requests/key', 'held', 'requests/tenant']);
  });

  it('gives the wait of all limits together, so that the same request is admitted after it', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, requestsPerMinute: 60, tokensPerMinute: 60 };
    const tenantLimits = { ...WIDE, requestsPerMinute: 60 };
    const big = () => f.request({ keyLimits, tenantLimits, promptTokens: 50 });
    await f.admit(big());
    const refused = await f.admit(big());
    expect(refused).toMatchObject({ reason: 'tokens', scope: 'key', retryAfterMs: 60_000 });
    f.nowMs += 60_000;
    expect(await f.admit(big())).toMatchObject({ kind: 'held' });
  });

  it('counts the tokens of the hold at admission, and the actual tokens at settlement', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, tokensPerMinute: 600 };
    const held = f.request({ keyLimits, promptTokens: 100, wantOutputTokens: 400, minOutputTokens: 400 });
    expect(await f.admit(held)).toMatchObject({
      kind: 'held',
      limits: { tokensRemaining: 100, tokensResetMs: 50_000 },
    });
    expect(await f.admit(f.request({ keyLimits, wantOutputTokens: 101 }))).toMatchObject({
      reason: 'tokens',
      scope: 'key',
      retryAfterMs: 100,
    });
    await f.settle(held.draft.id, 10n * TOKEN_NANOS, { promptTokens: 100 });
    expect(await f.admit(f.request({ keyLimits, wantOutputTokens: 490 }))).toMatchObject({
      kind: 'held',
      limits: { tokensRemaining: 0 },
    });
  });

  it('counts tokens beyond the hold too, for key and tenant', async () => {
    const f = fixture();
    const limits = { ...WIDE, tokensPerMinute: 600 };
    const id = await f.hold({ keyLimits: limits, tenantLimits: limits, wantOutputTokens: 100 });
    await f.settle(id, 100n * TOKEN_NANOS, { completionTokens: 500 });
    expect(await f.admit(f.request({ keyLimits: limits, wantOutputTokens: 101 }))).toMatchObject({
      reason: 'tokens',
      scope: 'key',
    });
    expect(
      await f.admit(f.request({ keyId: newId('key'), tenantLimits: limits, wantOutputTokens: 101 })),
    ).toMatchObject({ reason: 'tokens', scope: 'tenant' });
  });

  it('gives back all tokens of a void hold, but not its request', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, requestsPerMinute: 2, tokensPerMinute: 100 };
    expect(await f.void(await f.hold({ keyLimits, wantOutputTokens: 100 }))).toBe(true);
    expect(await f.admit(f.request({ keyLimits, wantOutputTokens: 100 }))).toMatchObject({
      kind: 'held',
      limits: { requestsRemaining: 0, tokensRemaining: 0 },
    });
  });

  it('counts a request larger than the whole bucket as the whole bucket', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, tokensPerMinute: 100 };
    const huge = () => f.request({ keyLimits, promptTokens: 1_000_000 });
    const first = huge();
    expect(await f.admit(first)).toMatchObject({ kind: 'held', limits: { tokensRemaining: 0, tokensResetMs: 60_000 } });
    expect(await f.admit(huge())).toMatchObject({ reason: 'tokens', retryAfterMs: 60_000 });
    // Settled at even more than the bucket: nothing beyond it is owed.
    await f.settle(first.draft.id, 0n, { promptTokens: 900_000 });
    f.nowMs += 60_000;
    expect(await f.admit(huge())).toMatchObject({ kind: 'held' });
  });

  it('occupies the concurrency of key and tenant until the end of a hold, however it ends', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, concurrency: 3 };
    const tenantLimits = { ...WIDE, concurrency: 4 };
    const ids = [await f.hold({ keyLimits }), await f.hold({ keyLimits }), await f.hold({ keyLimits })];
    const again = (keyId?: string) => f.request({ keyLimits, tenantLimits, ...(keyId ? { keyId } : {}) });
    expect(await f.admit(again())).toMatchObject({ reason: 'concurrency', scope: 'key', retryAfterMs: 1_000 });
    await f.hold({ keyId: newId('key') });
    expect(await f.admit(again(newId('key')))).toMatchObject({
      reason: 'concurrency',
      scope: 'tenant',
      retryAfterMs: 1_000,
    });
    await f.settle(ids[0]!, 0n);
    await f.void(ids[1]!);
    await f.settle(ids[0]!, 0n);
    expect(kinds(await f.store.admit([again(), again(), again()]))).toEqual(['held', 'held', 'concurrency/key']);
  });

  it("reports the state of the key's limits, also with a refusal", async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, requestsPerMinute: 10, tokensPerMinute: 1_000, concurrency: 1 };
    expect(await f.admit(f.request({ keyLimits, promptTokens: 90 }))).toMatchObject({
      limits: { requestsRemaining: 9, requestsResetMs: 6_000, tokensRemaining: 900, tokensResetMs: 6_000 },
    });
    f.nowMs += 3_000;
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({
      reason: 'concurrency',
      limits: { requestsRemaining: 9, requestsResetMs: 3_000, tokensRemaining: 950, tokensResetMs: 3_000 },
    });
  });

  it("reports the state of the tenant's limits beside the key's, also with a refusal and a look", async () => {
    const f = fixture();
    const [keyLimits, tenantLimits] = [
      { ...WIDE, requestsPerMinute: 60 },
      { ...WIDE, requestsPerMinute: 10, tokensPerMinute: 1_000, concurrency: 2 },
    ];
    const ask = () => f.request({ keyId: newId('key'), keyLimits, tenantLimits, promptTokens: 90 });
    await f.admit(ask());
    expect(await f.admit(ask())).toMatchObject({
      limits: {
        requestsRemaining: 59,
        tenant: { requestsRemaining: 8, requestsResetMs: 12_000, tokensRemaining: 800, tokensResetMs: 12_000 },
      },
    });
    const tenant = { requestsRemaining: 8, requestsResetMs: 12_000, tokensRemaining: 800, tokensResetMs: 12_000 };
    const expected = { reason: 'concurrency', scope: 'tenant', limits: { requestsRemaining: 60, tenant } };
    expect(await f.admit(ask())).toMatchObject(expected);
    expect(await f.look(ask())).toMatchObject(expected);
  });

  it('leaves no trace of a refused request, whatever refused it', async () => {
    const f = fixture();
    const keyLimits = { requestsPerMinute: 5, tokensPerMinute: 500, concurrency: 1 };
    const before = await f.admit(f.request({ keyLimits }));
    const sums = await f.sums();
    const refused = [
      f.request({ keyLimits }),
      f.request({ keyLimits: { ...keyLimits, concurrency: 2, tokensPerMinute: 1 } }),
      f.request({ keyLimits: { ...keyLimits, requestsPerMinute: 1 } }),
      f.request({ keyLimits: { ...keyLimits, concurrency: 2 }, keyBudgetNanos: 0n }),
      f.request({ keyLimits: { ...keyLimits, concurrency: 2 }, promptFemtos: 10n ** 30n }),
      f.request({ keyLimits: { ...keyLimits, concurrency: 2 }, promptFemtos: 10n ** 30n, boundIsExact: false }),
    ];
    const results = await f.store.admit(refused);
    expect(kinds(results)).toEqual([
      'concurrency/key',
      'tokens/key',
      'requests/key',
      'budget_reached/key',
      'credit_exhausted/tenant',
      'bound/tenant',
    ]);
    expect(await f.sums()).toEqual(sums);
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ reason: 'concurrency', limits: before.limits });
    expect(
      await f.store.progress(refused.map(({ draft }) => ({ id: draft.id, tenantId: draft.tenantId, delivered: null }))),
    ).not.toContain(true);
  });

  it('asks in order: suspended, requests, tokens, concurrency, budgets, credit', async () => {
    const f = fixture();
    await f.setBalance(0n, { suspended: true });
    const limits = { requestsPerMinute: 4, tokensPerMinute: 40, concurrency: 1 };
    const free = { outputFemtosPerToken: 0n, keyBudgetNanos: 0n };
    expect(await f.admit(f.request({ keyLimits: limits, ...free }))).toMatchObject({
      reason: 'tenant_suspended',
      scope: 'tenant',
      retryAfterMs: null,
    });
    await f.setBalance(0n);
    await f.hold({ keyLimits: limits, ...free });
    const reasons = [];
    for (const [requestsPerMinute, tokensPerMinute, concurrency, budget] of [
      [1, 10, 1, 0n],
      [4, 10, 1, 0n],
      [4, 40, 1, 0n],
      [4, 40, 2, 0n],
      [4, 40, 2, null],
    ] as const) {
      const result = await f.admit(
        f.request({ keyLimits: { requestsPerMinute, tokensPerMinute, concurrency }, keyBudgetNanos: budget }),
      );
      reasons.push(result.kind === 'refused' && result.reason);
    }
    expect(reasons).toEqual(['requests', 'tokens', 'concurrency', 'budget_reached', 'credit_exhausted']);
  });
}
