import { newId } from '@tollgate/contracts';
import type { LookResult } from '../admission-store';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

/** The answer before a body is read: whether any request would be admitted now. */
export function lookSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  const brief = (result: LookResult) =>
    result.kind === 'clear' ? 'clear' : `${result.reason}/${result.scope}/${result.retryAfterMs}`;

  it('is clear where the smallest request would be admitted, and takes nothing', async () => {
    const f = fixture();
    await f.setBalance(1n);
    const keyLimits = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 };
    const limits = { requestsRemaining: 1, requestsResetMs: 0, tokensRemaining: 1, tokensResetMs: 0 };
    const tenant = expect.objectContaining({ requestsResetMs: 0, tokensResetMs: 0 });
    for (let i = 0; i < 5; i++)
      expect(await f.look(f.request({ keyLimits }))).toEqual({ kind: 'clear', limits: { ...limits, tenant } });
    expect(await f.admit(f.least(f.request({ keyLimits })))).toMatchObject({ kind: 'held', holdNanos: 1n });
    expect(await f.sums()).toMatchObject({ balanceNanos: 1n, pendingNanos: 1n, pendingHolds: 1 });
  });

  it('refuses as the admission would, in the same order and with the same wait and scope', async () => {
    const f = fixture();
    await f.setBalance(0n, { suspended: true });
    const limits = { requestsPerMinute: 4, tokensPerMinute: 40, concurrency: 1 };
    const ask = (keyLimits = limits, keyBudgetNanos: bigint | null = 0n) => f.request({ keyLimits, keyBudgetNanos });
    expect(brief(await f.look(ask()))).toBe('tenant_suspended/tenant/null');
    await f.setBalance(0n);
    await f.hold({ keyLimits: limits, outputFemtosPerToken: 0n, wantOutputTokens: 20 });
    const seen: string[] = [];
    for (const [change, budget] of [
      [{ requestsPerMinute: 1 }, 0n],
      [{ tokensPerMinute: 1 }, 0n],
      [{}, 0n],
      [{ concurrency: 2 }, 0n],
      [{ concurrency: 2 }, null],
    ] as const) {
      const request = ask({ ...limits, ...change }, budget);
      const looked = await f.look(request);
      expect(looked).toEqual(await f.admit(f.least(request)));
      seen.push(brief(looked));
    }
    expect(seen).toEqual([
      'requests/key/15000',
      'tokens/key/30000',
      'concurrency/key/1000',
      'budget_reached/key/null',
      'credit_exhausted/tenant/null',
    ]);
  });

  it("counts the tenant's limits and budget over all its keys", async () => {
    const f = fixture();
    await f.setBalance(10n ** 9n);
    const tenantLimits = { ...WIDE, concurrency: 1 };
    const other = () => f.request({ keyId: newId('key'), tenantLimits });
    expect(brief(await f.look(other()))).toBe('clear');
    const id = await f.hold({ tenantLimits });
    expect(brief(await f.look(other()))).toBe('concurrency/tenant/1000');
    await f.settle(id, 10n * TOKEN_NANOS);
    const spent = { ...other(), tenantBudgetNanos: 10n * TOKEN_NANOS };
    expect(brief(await f.look(spent))).toBe('budget_reached/tenant/null');
    expect(brief(await f.look({ ...spent, tenantBudgetNanos: 10n * TOKEN_NANOS + 1n }))).toBe('clear');
    await f.setBalance(10n ** 9n, { budgets: [{ keyId: null, version: 1n, nanos: 'none' }] });
    expect(brief(await f.look(spent))).toBe('clear');
  });

  it('refuses for now when all unspent credit is held, and is clear while a nano is free', async () => {
    const f = fixture();
    await f.setBalance(10n * TOKEN_NANOS + 1n);
    const keyBudgetNanos = 10n * TOKEN_NANOS;
    const id = await f.hold({ keyBudgetNanos });
    expect(brief(await f.look())).toBe('clear');
    expect(brief(await f.look(f.request({ keyBudgetNanos })))).toBe('credit_held/key/1000');
    await f.hold({ wantOutputTokens: 1, outputFemtosPerToken: 1_000_000n });
    expect(brief(await f.look())).toBe('credit_held/tenant/1000');
    await f.void(id);
    expect(brief(await f.look())).toBe('clear');
  });

  it('does not check money for a request that may be free, but checks everything else', async () => {
    const f = fixture();
    await f.setBalance(-5n);
    const request = f.request({ keyBudgetNanos: 0n, tenantBudgetNanos: 0n });
    expect(brief(await f.look(request, false))).toBe('clear');
    expect(brief(await f.look(request))).toBe('budget_reached/key/null');
    await f.setBalance(-5n, { suspended: true });
    expect(brief(await f.look(request, false))).toBe('tenant_suspended/tenant/null');
  });

  it('refuses an unknown tenant for lack of credit, and does not create it', async () => {
    const f = fixture();
    expect(brief(await f.look())).toBe('credit_exhausted/tenant/null');
    expect(await f.store.snapshot({ tenantId: f.tenantId, limit: 1 })).toEqual([]);
  });

  it('answers each look of a call in its place, over tenants and keys, and fails a mistake alone', async () => {
    const f = fixture();
    await f.setBalance(10n ** 9n);
    const poor = f.request({ tenantId: newId('ten') });
    const wrong = f.request({ keyLimits: { ...WIDE, concurrency: 0 } });
    const held = f.request({ keyLimits: { ...WIDE, concurrency: 1 } });
    await f.admit(held);
    const asks = [poor, f.request(), wrong, held, poor].map((request) => f.lookOf(request));
    const results = await f.store.look(asks);
    expect(results.map((result) => (result instanceof Error ? 'mistake' : brief(result)))).toEqual([
      'credit_exhausted/tenant/null',
      'clear',
      'mistake',
      'concurrency/key/1000',
      'credit_exhausted/tenant/null',
    ]);
    expect(await f.store.look([])).toEqual([]);
  });
}
