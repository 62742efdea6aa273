import { newId } from '@tollgate/contracts';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './fixture.suite';

/** Credit and budgets: what is granted, what is refused and how. */
export function creditSuite(open: OpenStore): void {
  const fixture = useFixture(open);

  it('holds the whole cost that was asked for, rounded up to a nano', async () => {
    const f = fixture();
    await f.news(1_000n);
    const request = f.request({ promptFemtos: 1n, outputFemtosPerToken: 1_000_000n, wantOutputTokens: 100 });
    expect(await f.admit(request)).toMatchObject({ kind: 'held', holdNanos: 101n, outputTokens: 100 });
    expect(await f.sums()).toMatchObject({ pendingNanos: 101n, pendingHolds: 1 });
  });

  it('refuses for good when what is not spent does not pay for the prompt and one token, even where holds stand in the way too', async () => {
    const f = fixture();
    await f.news(5n * TOKEN_NANOS);
    const dear = f.request({ promptFemtos: 5n * TOKEN_NANOS * 1_000_000n });
    expect(await f.admit(dear)).toMatchObject({ reason: 'credit_exhausted', scope: 'tenant', retryAfterMs: null });
    await f.hold({ wantOutputTokens: 5 });
    expect(await f.admit(dear)).toMatchObject({ reason: 'credit_exhausted' });
  });

  it('settled usage is spent: it exhausts, and does not come back before the ledger says so', async () => {
    const f = fixture();
    await f.news(10n * TOKEN_NANOS);
    const id = await f.hold();
    await f.settle(id, 10n * TOKEN_NANOS);
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    await f.news(0n, { releases: [id] });
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    await f.news(10n * TOKEN_NANOS);
    expect(await f.admit()).toMatchObject({ kind: 'held', outputTokens: 10 });
  });

  it('clamps the output to what the credit affords', async () => {
    const f = fixture();
    await f.news(7n * TOKEN_NANOS + 999n);
    const request = f.request({ wantOutputTokens: 100, minOutputTokens: 50 });
    expect(await f.admit(request)).toMatchObject({ kind: 'held', outputTokens: 7, holdNanos: 7n * TOKEN_NANOS });
  });

  it("beside others' holds it grants what is left down to the least wanted, and below it says that it will pass", async () => {
    const f = fixture();
    await f.news(10n * TOKEN_NANOS);
    const held = await f.hold({ wantOutputTokens: 6 });
    expect(await f.admit(f.request({ minOutputTokens: 5 }))).toMatchObject({
      reason: 'credit_held',
      scope: 'tenant',
      retryAfterMs: 1_000,
    });
    expect(await f.admit(f.request({ minOutputTokens: 4 }))).toMatchObject({ kind: 'held', outputTokens: 4 });
    await f.void(held);
    expect(await f.admit(f.request({ minOutputTokens: 5 }))).toMatchObject({ kind: 'held', outputTokens: 6 });
  });

  it('the least wanted is no more than what the credit affords at all', async () => {
    const f = fixture();
    await f.news(3n * TOKEN_NANOS);
    expect(await f.admit(f.request({ wantOutputTokens: 10, minOutputTokens: 10 }))).toMatchObject({
      kind: 'held',
      outputTokens: 3,
    });
    expect(await f.admit(f.request({ wantOutputTokens: 10, minOutputTokens: 10 }))).toMatchObject({
      reason: 'credit_held',
    });
  });

  it('an embedding is paid whole or not at all', async () => {
    const f = fixture();
    await f.news(100n);
    const embed = (nanos: bigint) =>
      f.request({ promptFemtos: nanos * 1_000_000n, wantOutputTokens: 0, minOutputTokens: 0 });
    expect(await f.admit(embed(101n))).toMatchObject({ reason: 'credit_exhausted' });
    expect(await f.admit(embed(60n))).toMatchObject({ kind: 'held', holdNanos: 60n, outputTokens: 0 });
    expect(await f.admit(embed(41n))).toMatchObject({ reason: 'credit_held', retryAfterMs: 1_000 });
    expect(await f.admit(embed(40n))).toMatchObject({ kind: 'held', holdNanos: 40n });
  });

  it('asks for the exact count of the prompt before it clamps or refuses for money', async () => {
    const f = fixture();
    await f.news(10n * TOKEN_NANOS);
    const rough = (wantOutputTokens: number) => f.request({ wantOutputTokens, boundIsExact: false });
    expect(await f.admit(rough(11))).toMatchObject({ reason: 'bound', retryAfterMs: null });
    expect(await f.admit(f.request({ promptFemtos: 10n ** 20n, boundIsExact: false }))).toMatchObject({
      reason: 'bound',
    });
    expect(await f.admit({ ...rough(5), tenantBudgetNanos: TOKEN_NANOS })).toMatchObject({ reason: 'bound' });
    expect(await f.admit(rough(10))).toMatchObject({ kind: 'held', outputTokens: 10 });
    expect(await f.admit(rough(1))).toMatchObject({ reason: 'bound' });
  });

  it('serves free models to a tenant without credit, also one that it never heard of', async () => {
    const f = fixture();
    const free = f.request({ outputFemtosPerToken: 0n, wantOutputTokens: 1_000 });
    expect(await f.admit(free)).toMatchObject({ kind: 'held', holdNanos: 0n, outputTokens: 1_000 });
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    expect(await f.sums()).toMatchObject({ version: 0n, balanceNanos: 0n, pendingHolds: 1 });
  });

  it('computes with prices and counts far beyond 64 bits', async () => {
    const f = fixture();
    await f.news(4n * 10n ** 18n);
    const keyLimits = { ...WIDE, tokensPerMinute: 10 ** 12 };
    const vast = f.request({
      keyLimits,
      tenantLimits: keyLimits,
      promptFemtos: 10n ** 23n,
      outputFemtosPerToken: 10n ** 15n,
      wantOutputTokens: 1_600_000_000,
    });
    expect(await f.admit(vast)).toMatchObject({ kind: 'held', holdNanos: 10n ** 17n + 16n * 10n ** 17n });
    const beyond = f.request({
      keyLimits,
      tenantLimits: keyLimits,
      promptFemtos: 10n ** 23n,
      outputFemtosPerToken: 10n ** 16n,
      wantOutputTokens: 1_600_000_000,
      keyBudgetNanos: 10n ** 30n,
    });
    expect(await f.admit(beyond)).toMatchObject({
      kind: 'held',
      outputTokens: 220_000_000,
      holdNanos: 23n * 10n ** 17n,
    });
    expect((await f.sums()).pendingNanos).toBe(4n * 10n ** 18n);
  });

  it('rounds a clamped hold of seventeen digits up to the nano', async () => {
    const f = fixture();
    await f.news(10n ** 17n + 10n);
    const wide = { ...WIDE, tokensPerMinute: 10 ** 12 };
    const request = f.request({
      keyLimits: wide,
      tenantLimits: wide,
      promptFemtos: 1n,
      outputFemtosPerToken: 10n ** 15n,
      wantOutputTokens: 200_000_000,
    });
    expect(await f.admit(request)).toMatchObject({ outputTokens: 10 ** 8, holdNanos: 10n ** 17n + 1n });
  });

  it.each(['key', 'tenant'] as const)(
    'the budget of a %s clamps, holds, and is reached by spending only',
    async (scope) => {
      const f = fixture();
      await f.news(10n ** 15n);
      const budget = scope === 'key' ? { keyBudgetNanos: 10n * TOKEN_NANOS } : { tenantBudgetNanos: 10n * TOKEN_NANOS };
      const id = await f.hold({ ...budget, wantOutputTokens: 6 });
      expect(await f.admit(f.request({ ...budget, minOutputTokens: 5 }))).toMatchObject({
        reason: 'credit_held',
        scope,
        retryAfterMs: 1_000,
      });
      const second = f.request({ ...budget, minOutputTokens: 4 });
      expect(await f.admit(second)).toMatchObject({ kind: 'held', outputTokens: 4 });
      await f.settle(id, 6n * TOKEN_NANOS);
      expect(await f.admit(f.request(budget))).toMatchObject({ reason: 'credit_held', scope });
      await f.settle(second.draft.id, 4n * TOKEN_NANOS);
      expect(await f.admit(f.request(budget))).toMatchObject({ reason: 'budget_reached', scope, retryAfterMs: null });
      // Releases take nothing off what was spent in the month.
      await f.news(10n ** 15n, { releases: [id, second.draft.id] });
      expect(await f.admit(f.request(budget))).toMatchObject({ reason: 'budget_reached', scope });
      const other = await f.admit(f.request({ ...budget, keyId: newId('key') }));
      expect(other.kind).toBe(scope === 'key' ? 'held' : 'refused');
    },
  );

  it('budgets begin anew with the calendar month in UTC, and what ended before does not count in it', async () => {
    const f = fixture();
    await f.news(10n ** 15n);
    f.nowMs = Date.UTC(2026, 4, 31, 23, 59, 59, 999);
    const budgets = { keyBudgetNanos: 10n * TOKEN_NANOS, tenantBudgetNanos: 10n * TOKEN_NANOS };
    await f.settle(await f.hold({ ...budgets, wantOutputTokens: 4 }), 4n * TOKEN_NANOS);
    const late = await f.hold({ ...budgets, wantOutputTokens: 6 });
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'credit_held' });
    const endedAt = new Date(f.nowMs).toISOString();
    f.nowMs += 1;
    // A hold over the turn of the month still counts as held.
    expect(await f.admit(f.request({ ...budgets, minOutputTokens: 5 }))).toMatchObject({ reason: 'credit_held' });
    await f.settle(late, 6n * TOKEN_NANOS, { endedAt });
    const next = f.request(budgets);
    expect(await f.admit(next)).toMatchObject({ kind: 'held', outputTokens: 10 });
    await f.settle(next.draft.id, 10n * TOKEN_NANOS);
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'budget_reached', scope: 'key' });
  });

  it('grants the least of what credit and both budgets grant', async () => {
    const f = fixture();
    await f.news(9n * TOKEN_NANOS);
    expect(
      await f.admit(f.request({ keyBudgetNanos: 7n * TOKEN_NANOS, tenantBudgetNanos: 8n * TOKEN_NANOS })),
    ).toMatchObject({ outputTokens: 7 });
    expect(
      await f.admit(
        f.request({ keyId: newId('key'), keyBudgetNanos: 7n * TOKEN_NANOS, tenantBudgetNanos: 8n * TOKEN_NANOS }),
      ),
    ).toMatchObject({ outputTokens: 1 });
    expect(await f.admit(f.request({ keyId: newId('key') }))).toMatchObject({ outputTokens: 1 });
    expect(await f.admit(f.request({ keyId: newId('key') }))).toMatchObject({ reason: 'credit_held' });
  });

  it('takes no number that is not one, and lets the rest of the call pass', async () => {
    const f = fixture();
    await f.news(10n ** 15n);
    const results = await f.store.admit([
      f.request({ promptTokens: Number.NaN }),
      f.request(),
      f.request({ minOutputTokens: 11 }),
      f.request({ keyLimits: { requestsPerMinute: 0, tokensPerMinute: 1, concurrency: 1 } }),
    ]);
    expect(results.map((result) => (result instanceof RangeError ? 'mistake' : result.kind))).toEqual([
      'mistake',
      'held',
      'mistake',
      'mistake',
    ]);
  });
}
