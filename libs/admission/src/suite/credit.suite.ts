import { newId } from '@tollgate/contracts';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

/** Credit: what is granted, and what is refused for which reason. */
export function creditSuite(open: OpenStore): void {
  const fixture = useFixture(open);

  it('holds the whole requested cost, rounded up to a nano', async () => {
    const f = fixture();
    await f.setBalance(1_000n);
    const request = f.request({ promptFemtos: 1n, outputFemtosPerToken: 1_000_000n, wantOutputTokens: 100 });
    expect(await f.admit(request)).toMatchObject({ kind: 'held', holdNanos: 101n, outputTokens: 100 });
    expect(await f.sums()).toMatchObject({ pendingNanos: 101n, pendingHolds: 1 });
  });

  it('refuses for good when unspent credit does not pay for prompt and one token, with or without holds', async () => {
    const f = fixture();
    await f.setBalance(5n * TOKEN_NANOS);
    const dear = f.request({ promptFemtos: 5n * TOKEN_NANOS * 1_000_000n });
    expect(await f.admit(dear)).toMatchObject({ reason: 'credit_exhausted', scope: 'tenant', retryAfterMs: null });
    await f.hold({ wantOutputTokens: 5 });
    expect(await f.admit(dear)).toMatchObject({ reason: 'credit_exhausted' });
  });

  it('exhausts credit by settled usage, until the ledger says otherwise', async () => {
    const f = fixture();
    await f.setBalance(10n * TOKEN_NANOS);
    const id = await f.hold();
    await f.settle(id, 10n * TOKEN_NANOS);
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    await f.setBalance(0n, { releases: [id] });
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    await f.setBalance(10n * TOKEN_NANOS);
    expect(await f.admit()).toMatchObject({ kind: 'held', outputTokens: 10 });
  });

  it('clamps the output to what the credit pays for', async () => {
    const f = fixture();
    await f.setBalance(7n * TOKEN_NANOS + 999n);
    const request = f.request({ wantOutputTokens: 100, minOutputTokens: 50 });
    expect(await f.admit(request)).toMatchObject({ kind: 'held', outputTokens: 7, holdNanos: 7n * TOKEN_NANOS });
  });

  it('grants the remainder beside other holds down to the minimum, and refuses below it for now', async () => {
    const f = fixture();
    await f.setBalance(10n * TOKEN_NANOS);
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

  describe('the wait behind other holds is when the next one is expected to end', () => {
    /** Credit for two holds, after some holds of this length, each ended in its own call. */
    const after = async (...lengthsMs: number[]) => {
      const f = fixture();
      await f.setBalance(20n * TOKEN_NANOS);
      for (const lengthMs of lengthsMs) {
        const id = await f.hold();
        f.nowMs += lengthMs;
        await (lengthMs % 2 === 0 ? f.settle(id, 0n) : f.void(id));
      }
      await f.hold();
      return f;
    };

    it('divides the mean length of the last holds by the number of running ones', async () => {
      const f = await after(9_000);
      await f.hold({ wantOutputTokens: 5 });
      await f.hold({ wantOutputTokens: 5 });
      expect(await f.admit()).toMatchObject({ reason: 'credit_held', scope: 'tenant', retryAfterMs: 3_000 });
      const keyLimits = { ...WIDE, concurrency: 3 };
      expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ reason: 'concurrency', retryAfterMs: 3_000 });
    });

    it('weighs a later hold by an eighth, and all holds that end in one call as one', async () => {
      const f = await after(8_001, 16_000);
      const both = [await f.hold({ wantOutputTokens: 1 }), await f.hold({ wantOutputTokens: 1 })];
      f.nowMs += 1_000;
      await f.store.settle(both.map((id) => ({ event: f.event(id, 0n) })));
      // ⌊(8,001 × 7 + 16,000) ÷ 8⌋ = 9,000; ⌊(9,000 × 7 + 1,000) ÷ 8⌋ = 8,000
      await f.hold();
      expect(await f.admit()).toMatchObject({ reason: 'credit_held', retryAfterMs: 4_000 });
    });

    it.each([
      [0, 1_000],
      [10, 1_000],
      [3_600_000, 60_000],
    ])('stays between a second and a minute for holds of %i ms', async (lengthMs, retryAfterMs) => {
      const f = await after(lengthMs);
      await f.hold();
      expect(await f.admit()).toMatchObject({ reason: 'credit_held', retryAfterMs });
    });

    it('divides by the running holds of the key where the budget of the key is held', async () => {
      const f = await after(6_000);
      const [keyId, keyBudgetNanos] = [newId('key'), 10n * TOKEN_NANOS];
      await f.hold({ keyId, keyBudgetNanos });
      expect(await f.admit(f.request({ keyId, keyBudgetNanos }))).toMatchObject({
        reason: 'credit_held',
        scope: 'key',
        retryAfterMs: 6_000,
      });
    });

    it('counts an expired hold with its length until the expiry', async () => {
      const f = await after();
      f.nowMs += 12_000;
      await f.sweep();
      await f.hold();
      await f.hold();
      expect(await f.admit()).toMatchObject({ reason: 'credit_held', retryAfterMs: 6_000 });
    });
  });

  it('never demands a minimum above what the credit pays for at all', async () => {
    const f = fixture();
    await f.setBalance(3n * TOKEN_NANOS);
    expect(await f.admit(f.request({ wantOutputTokens: 10, minOutputTokens: 10 }))).toMatchObject({
      kind: 'held',
      outputTokens: 3,
    });
    expect(await f.admit(f.request({ wantOutputTokens: 10, minOutputTokens: 10 }))).toMatchObject({
      reason: 'credit_held',
    });
  });

  it('grants an embedding wholly or not at all', async () => {
    const f = fixture();
    await f.setBalance(100n);
    const embed = (nanos: bigint) =>
      f.request({ promptFemtos: nanos * 1_000_000n, wantOutputTokens: 0, minOutputTokens: 0 });
    expect(await f.admit(embed(101n))).toMatchObject({ reason: 'credit_exhausted' });
    expect(await f.admit(embed(60n))).toMatchObject({ kind: 'held', holdNanos: 60n, outputTokens: 0 });
    expect(await f.admit(embed(41n))).toMatchObject({ reason: 'credit_held', retryAfterMs: 1_000 });
    expect(await f.admit(embed(40n))).toMatchObject({ kind: 'held', holdNanos: 40n });
  });

  it('asks for the exact count of the prompt before it clamps or refuses for money', async () => {
    const f = fixture();
    await f.setBalance(10n * TOKEN_NANOS);
    const rough = (wantOutputTokens: number) => f.request({ wantOutputTokens, boundIsExact: false });
    expect(await f.admit(rough(11))).toMatchObject({ reason: 'bound', retryAfterMs: null });
    expect(await f.admit(f.request({ promptFemtos: 10n ** 20n, boundIsExact: false }))).toMatchObject({
      reason: 'bound',
    });
    expect(await f.admit({ ...rough(5), tenantBudgetNanos: TOKEN_NANOS })).toMatchObject({ reason: 'bound' });
    expect(await f.admit(rough(10))).toMatchObject({ kind: 'held', outputTokens: 10 });
    expect(await f.admit(rough(1))).toMatchObject({ reason: 'bound' });
  });

  it('serves free models to a tenant without credit, also to an unknown one', async () => {
    const f = fixture();
    const free = f.request({ outputFemtosPerToken: 0n, wantOutputTokens: 1_000 });
    expect(await f.admit(free)).toMatchObject({ kind: 'held', holdNanos: 0n, outputTokens: 1_000 });
    expect(await f.admit()).toMatchObject({ reason: 'credit_exhausted' });
    expect(await f.sums()).toMatchObject({ version: 0n, balanceNanos: 0n, pendingHolds: 1 });
  });

  it('serves free models also when credit is overdrawn or a budget is overspent', async () => {
    const f = fixture();
    const free = (more: object = {}) =>
      f.request({ outputFemtosPerToken: 0n, wantOutputTokens: 7, minOutputTokens: 7, ...more });
    await f.setBalance(-5n);
    expect(await f.admit(free())).toMatchObject({ kind: 'held', holdNanos: 0n, outputTokens: 7 });
    expect(await f.admit(free({ boundIsExact: false }))).toMatchObject({ kind: 'held', outputTokens: 7 });
    await f.setBalance(10n ** 15n);
    await f.settle(await f.hold(), 10n * TOKEN_NANOS);
    expect(await f.admit(free({ keyBudgetNanos: 0n, tenantBudgetNanos: 1n }))).toMatchObject({ kind: 'held' });
    const keyLimits = { ...WIDE, concurrency: 3 };
    expect(await f.admit(free({ keyLimits }))).toMatchObject({ reason: 'concurrency', scope: 'key' });
    await f.setBalance(10n ** 15n, { suspended: true });
    expect(await f.admit(free())).toMatchObject({ reason: 'tenant_suspended' });
  });

  it('computes with prices and counts far beyond 64 bits', async () => {
    const f = fixture();
    await f.setBalance(4n * 10n ** 18n);
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

  it('takes a debt far beyond 64 bits as the highest one, and the other updates of the call as they are', async () => {
    const f = fixture();
    await f.setBalance(4n * 10n ** 18n);
    const far = { ...WIDE, tokensPerMinute: 10 ** 12 };
    const dear = { keyLimits: far, tenantLimits: far, outputFemtosPerToken: 10n ** 16n, wantOutputTokens: 200_000_000 };
    const settled = await f.hold(dear);
    await f.hold(dear);
    await f.settle(settled, 2n * 10n ** 18n, { completionTokens: 200_000_000 });
    const [inDebt, other] = [f.tenantId, newId('ten')];
    const debt = { tenantId: inDebt, version: 9n, balanceNanos: -(10n ** 30n), releases: [], suspended: false };
    const credit = { ...debt, tenantId: other, balanceNanos: 10n * TOKEN_NANOS };
    await f.store.applyBalanceUpdates([debt, credit]);
    expect(await f.sums()).toMatchObject({ version: 9n, balanceNanos: -4n * 10n ** 18n });
    const [refused, held] = await f.store.admit([f.request(), f.request({ tenantId: other })]);
    expect(refused).toMatchObject({ reason: 'credit_exhausted' });
    expect(held).toMatchObject({ kind: 'held' });
    await f.store.repair({ ...debt, version: 10n, budgets: [], spent: [] });
    expect(await f.sums()).toMatchObject({ version: 10n, balanceNanos: -4n * 10n ** 18n });
    await f.store.applyBalanceUpdates([{ ...debt, version: 11n, balanceNanos: 10n ** 19n, releases: [settled] }]);
    expect(await f.admit(f.request())).toMatchObject({ kind: 'held' });
  });

  it('rounds a clamped hold of seventeen digits up to the nano', async () => {
    const f = fixture();
    await f.setBalance(10n ** 17n + 10n);
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

  it('refuses a number that is none, and lets the other requests of the call pass', async () => {
    const f = fixture();
    await f.setBalance(10n ** 15n);
    const results = await f.store.admit([
      f.request({ promptTokens: Number.NaN }),
      f.request(),
      f.request({ minOutputTokens: 11 }),
      f.request({ keyLimits: { requestsPerMinute: 0, tokensPerMinute: 1, concurrency: 1 } }),
    ]);
    expect(results.map((result) => (result instanceof Error ? result.name : result.kind))).toEqual([
      'RangeError',
      'held',
      'RangeError',
      'RangeError',
    ]);
  });
}
