import { DEFAULT_LEASE_MS } from '../admission-store';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

const DAY_MS = 86_400_000;
const MONTH_MS = 30 * DAY_MS;
const PLENTY_NANOS = 10n ** 15n;

/**
 * The store's clock was wrong for a while and is right again. Nothing is blocked or free for longer than it would have
 * been anyway.
 */
export function clockSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(PLENTY_NANOS));

  it.each(['key', 'tenant'] as const)(
    'blocks the %s for no longer than one bucket after one request on a clock 30 days ahead',
    async (scope) => {
      const f = fixture();
      const limits = { ...WIDE, requestsPerMinute: 60, tokensPerMinute: 600 };
      const limited = scope === 'key' ? { keyLimits: limits } : { tenantLimits: limits };
      f.nowMs += MONTH_MS;
      const id = await f.hold({ ...limited, wantOutputTokens: 600 });
      f.nowMs -= MONTH_MS;
      // The buckets have the state of that time, and fill from now on.
      expect(await f.admit(f.request({ ...limited, wantOutputTokens: 1 }))).toMatchObject({
        kind: 'refused',
        scope,
        reason: 'tokens',
        retryAfterMs: 100,
      });
      f.nowMs += 60_000;
      await f.settle(id, 600n * TOKEN_NANOS);
      expect(await f.admit(f.request({ ...limited, wantOutputTokens: 600 }))).toMatchObject({ kind: 'held' });
    },
  );

  it('a settlement without a correction leaves the buckets of a clock that was ahead as they were written', async () => {
    const f = fixture();
    const limited = { keyLimits: { ...WIDE, requestsPerMinute: 60, tokensPerMinute: 600 } };
    f.nowMs += MONTH_MS;
    const id = await f.hold({ ...limited, wantOutputTokens: 600 });
    f.nowMs -= MONTH_MS;
    await f.settle(id, 600n * TOKEN_NANOS);
    f.nowMs += 60_000;
    // They fill from the first admission on.
    const refused = { kind: 'refused', reason: 'tokens', retryAfterMs: 100 };
    expect(await f.admit(f.request({ ...limited, wantOutputTokens: 1 }))).toMatchObject(refused);
  });

  it('blocks nobody after one settlement on a clock that was ahead', async () => {
    const f = fixture();
    const limits = { ...WIDE, requestsPerMinute: 60, tokensPerMinute: 600 };
    const limited = { keyLimits: limits, tenantLimits: limits };
    const id = await f.hold({ ...limited, wantOutputTokens: 100 });
    f.nowMs += MONTH_MS;
    await f.settle(id, 100n * TOKEN_NANOS, { completionTokens: 400 });
    f.nowMs -= MONTH_MS;
    // The 400 tokens that it counted are owed from the first look on, and 200 are left.
    expect(await f.admit(f.request({ ...limited, wantOutputTokens: 600 }))).toMatchObject({
      reason: 'tokens',
      retryAfterMs: 30_000,
    });
    f.nowMs += 30_000;
    expect(await f.admit(f.request({ ...limited, wantOutputTokens: 600 }))).toMatchObject({ kind: 'held' });
  });

  it('keeps what settlements owe to the token limit beyond a minute', async () => {
    const f = fixture();
    const limited = { keyLimits: { ...WIDE, tokensPerMinute: 600 } };
    const ids = [];
    for (let n = 0; n < 5; n++) ids.push(await f.hold({ ...limited, wantOutputTokens: 1 }));
    for (const id of ids) await f.settle(id, TOKEN_NANOS, { completionTokens: 600 });
    expect(await f.admit(f.request({ ...limited, wantOutputTokens: 600 }))).toMatchObject({
      reason: 'tokens',
      retryAfterMs: 300_000,
    });
  });

  it.each([
    ['ahead', MONTH_MS],
    ['back', -MONTH_MS],
  ])('limits as before after a clock went %s for good', async (_, byMs) => {
    const f = fixture();
    const limited = { keyLimits: { ...WIDE, requestsPerMinute: 6 } };
    for (let n = 0; n < 6; n++) await f.hold(limited);
    f.nowMs += byMs;
    let held = 0;
    for (let n = 0; n < 20; n++) {
      if ((await f.admit(f.request(limited))).kind === 'held') held++;
      f.nowMs += 1_000;
    }
    // Full again after a jump ahead. After a jump back, empty as before.
    expect(held).toBe(byMs > 0 ? 7 : 1);
  });

  it('expires a hold of a dead gateway a lease after the clock is right again', async () => {
    const f = fixture();
    f.nowMs += MONTH_MS;
    const lost = await f.hold();
    const delivered = await f.hold();
    await f.progress(delivered, 4);
    f.nowMs -= MONTH_MS;
    const seenMs = f.nowMs;
    expect(await f.sweep()).toEqual([]);
    f.nowMs += DEFAULT_LEASE_MS - 1;
    expect(await f.sweep()).toEqual([]);
    f.nowMs += 1;
    expect(await f.sweep()).toMatchObject([
      { id: delivered, completionTokens: 4, endedAt: new Date(seenMs).toISOString() },
    ]);
    expect(await f.sums()).toMatchObject({ pendingHolds: 0, pendingNanos: 0n });
    expect(await f.settle(lost, 0n)).toEqual({ kind: 'forbidden' });
  });

  it('keeps a hold with heartbeats alive, however the clock jumps between them', async () => {
    const f = fixture();
    const id = await f.hold();
    for (const byMs of [MONTH_MS, -2 * MONTH_MS, DAY_MS]) {
      f.nowMs += byMs;
      expect(await f.progress(id, 1)).toBe(true);
      expect(await f.sweep()).toEqual([]);
    }
    expect(await f.settle(id, TOKEN_NANOS)).toMatchObject({ kind: 'settled', repeated: false });
  });

  it('hands out a settlement of a clock that was ahead after the waiting time', async () => {
    const f = fixture();
    f.nowMs += MONTH_MS;
    const id = await f.hold();
    const event = f.event(id, TOKEN_NANOS);
    await f.store.settle([{ event }]);
    f.nowMs -= MONTH_MS;
    expect(await f.sweep(60_000)).toEqual([]);
    f.nowMs += 60_000;
    expect(await f.sweep(60_000)).toEqual([event]);
  });

  it.each(['key', 'tenant'] as const)(
    'starts the budget of a %s again with the next month, after a clock that was years ahead',
    async (scope) => {
      const f = fixture();
      const budget = scope === 'key' ? { keyBudgetNanos: 10n * TOKEN_NANOS } : { tenantBudgetNanos: 10n * TOKEN_NANOS };
      const right = f.nowMs;
      f.nowMs = Date.UTC(2031, 0, 5);
      await f.settle(await f.hold({ ...budget, wantOutputTokens: 6 }), 6n * TOKEN_NANOS);
      f.nowMs = right;
      // Spending counts in the month by the right clock.
      await f.settle(await f.hold({ ...budget, wantOutputTokens: 4 }), 4n * TOKEN_NANOS);
      expect(await f.admit(f.request(budget))).toMatchObject({ reason: 'budget_reached', scope });
      f.nowMs = Date.UTC(2026, 5, 1);
      expect(await f.admit(f.request(budget))).toMatchObject({ kind: 'held', outputTokens: 10 });
    },
  );

  it('soon forgets a hold that a jump of the clock made 30 days long in the expected waiting time', async () => {
    const f = fixture();
    const id = await f.hold();
    f.nowMs += MONTH_MS;
    await f.settle(id, TOKEN_NANOS);
    for (let n = 0; n < 40; n++) await f.settle(await f.hold(), TOKEN_NANOS);
    const keyLimits = { ...WIDE, concurrency: 1 };
    await f.hold({ keyLimits });
    const refused = await f.admit(f.request({ keyLimits }));
    expect(refused).toMatchObject({ reason: 'concurrency' });
    expect(refused.kind === 'refused' && refused.retryAfterMs).toBeLessThan(20_000);
  });
}
