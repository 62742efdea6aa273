import { newId } from '@tollgate/contracts';
import type { Budget } from '../admission-store';
import { TOKEN_NANOS, useFixture, type Fixture, type OpenStore } from './store.fixture';

const PLENTY_NANOS = 10n ** 15n;

/** Budgets of the calendar month: the defaults that requests bring, and those that the operator sets. */
export function budgetsSuite(open: OpenStore): void {
  const fixture = useFixture(open);

  it.each(['key', 'tenant'] as const)(
    'clamps and holds by the budget of a %s, which only spending can reach',
    async (scope) => {
      const f = fixture();
      await f.setBalance(10n ** 15n);
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
      // A release does not reduce what was spent in the month.
      await f.setBalance(10n ** 15n, { releases: [id, second.draft.id] });
      expect(await f.admit(f.request(budget))).toMatchObject({ reason: 'budget_reached', scope });
      const other = await f.admit(f.request({ ...budget, keyId: newId('key') }));
      expect(other.kind).toBe(scope === 'key' ? 'held' : 'refused');
    },
  );

  it('starts budgets again with the calendar month in UTC, without what ended before', async () => {
    const f = fixture();
    await f.setBalance(10n ** 15n);
    f.nowMs = Date.UTC(2026, 4, 31, 23, 59, 59, 999);
    const budgets = { keyBudgetNanos: 10n * TOKEN_NANOS, tenantBudgetNanos: 10n * TOKEN_NANOS };
    await f.settle(await f.hold({ ...budgets, wantOutputTokens: 4 }), 4n * TOKEN_NANOS);
    const late = await f.hold({ ...budgets, wantOutputTokens: 6 });
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'credit_held' });
    const endedAt = new Date(f.nowMs).toISOString();
    f.nowMs += 1;
    // A hold across the turn of the month still counts as held.
    expect(await f.admit(f.request({ ...budgets, minOutputTokens: 5 }))).toMatchObject({ reason: 'credit_held' });
    await f.settle(late, 6n * TOKEN_NANOS, { endedAt });
    const next = f.request(budgets);
    expect(await f.admit(next)).toMatchObject({ kind: 'held', outputTokens: 10 });
    await f.settle(next.draft.id, 10n * TOKEN_NANOS);
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'budget_reached', scope: 'key' });
  });

  it('counts spending in this month that a clock ahead dated into the next month, or years later', async () => {
    const f = fixture();
    await f.setBalance(10n ** 15n);
    const budgets = { keyBudgetNanos: 10n * TOKEN_NANOS, tenantBudgetNanos: 10n * TOKEN_NANOS };
    const [first, second] = [
      await f.hold({ ...budgets, wantOutputTokens: 4 }),
      await f.hold({ ...budgets, wantOutputTokens: 6 }),
    ];
    await f.settle(first, 4n * TOKEN_NANOS, { endedAt: '2026-06-01T00:00:00.000Z' });
    await f.settle(second, 6n * TOKEN_NANOS, { endedAt: '2099-01-01T00:00:00.000Z' });
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'budget_reached' });
    f.nowMs = Date.UTC(2026, 5, 1);
    await f.settle(await f.hold({ ...budgets, wantOutputTokens: 10 }), 10n * TOKEN_NANOS);
    expect(await f.admit(f.request(budgets))).toMatchObject({ reason: 'budget_reached' });
  });

  it('grants the minimum of what credit and both budgets allow', async () => {
    const f = fixture();
    await f.setBalance(9n * TOKEN_NANOS);
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

  describe.each(['key', 'tenant'] as const)('a budget that was set for a %s', (scope) => {
    const keyIdOf = (f: Fixture) => (scope === 'key' ? f.keyId : null);
    const set = (f: Fixture, version: bigint, nanos: Budget['nanos']) =>
      f.setBalance(PLENTY_NANOS, { budgets: [{ keyId: keyIdOf(f), version, nanos }] });
    const byDefault = (nanos: bigint) => (scope === 'key' ? { keyBudgetNanos: nanos } : { tenantBudgetNanos: nanos });

    it('is in force for the next admission, instead of the default that the request brings', async () => {
      const f = fixture();
      await set(f, 1n, 4n * TOKEN_NANOS);
      expect(await f.admit(f.request())).toMatchObject({ kind: 'held', outputTokens: 4 });
      expect(await f.admit(f.request(byDefault(100n * TOKEN_NANOS)))).toMatchObject({ reason: 'credit_held', scope });
      await set(f, 2n, 6n * TOKEN_NANOS);
      expect(await f.admit(f.request())).toMatchObject({ kind: 'held', outputTokens: 2 });
    });

    it('removes the default by "none" and restores it by "default"', async () => {
      const f = fixture();
      const request = () => f.request({ ...byDefault(3n * TOKEN_NANOS), wantOutputTokens: 3 });
      await set(f, 1n, 'none');
      expect(await f.admit(request())).toMatchObject({ kind: 'held', outputTokens: 3 });
      expect(await f.admit(request())).toMatchObject({ kind: 'held', outputTokens: 3 });
      await set(f, 2n, 'default');
      expect(await f.admit(request())).toMatchObject({ reason: 'credit_held', scope });
      expect(await f.admit(f.request())).toMatchObject({ kind: 'held' });
    });

    it('converges on the newest version, in any order and with repeats', async () => {
      const f = fixture();
      await set(f, 3n, 5n * TOKEN_NANOS);
      await set(f, 2n, 100n * TOKEN_NANOS);
      await set(f, 3n, 200n * TOKEN_NANOS);
      await set(f, 1n, 'none');
      expect(await f.admit(f.request())).toMatchObject({ kind: 'held', outputTokens: 5 });
    });

    it('has a version of its own, so an old balance update can bring a new budget', async () => {
      const f = fixture();
      await f.setBalance(PLENTY_NANOS);
      const old = { tenantId: f.tenantId, version: 0n, balanceNanos: 0n, releases: [], suspended: false };
      await f.store.applyBalanceUpdates([
        { ...old, budgets: [{ keyId: keyIdOf(f), version: 1n, nanos: 5n * TOKEN_NANOS }] },
      ]);
      expect(await f.admit(f.request())).toMatchObject({ kind: 'held', outputTokens: 5 });
    });

    it('refuses every paid request at zero', async () => {
      const f = fixture();
      await set(f, 1n, 0n);
      expect(await f.admit(f.request())).toMatchObject({ reason: 'budget_reached', scope, retryAfterMs: null });
      expect(await f.admit(f.request({ outputFemtosPerToken: 0n }))).toMatchObject({ kind: 'held' });
    });

    it('limits and frees extensions of running requests', async () => {
      const f = fixture();
      await f.setBalance(PLENTY_NANOS);
      const id = await f.hold(byDefault(12n * TOKEN_NANOS));
      const extend = async () =>
        (await f.store.extend([{ id, tenantId: f.tenantId, wantNanos: 5n * TOKEN_NANOS, minNanos: TOKEN_NANOS }]))[0];
      expect(await extend()).toMatchObject({ kind: 'extended', grantedNanos: 2n * TOKEN_NANOS });
      expect(await extend()).toEqual({ kind: 'refused' });
      await set(f, 1n, 15n * TOKEN_NANOS);
      expect(await extend()).toMatchObject({ kind: 'extended', grantedNanos: 3n * TOKEN_NANOS });
      // Below what is already held: running requests keep their holds and get no more.
      await set(f, 2n, 1n * TOKEN_NANOS);
      expect(await extend()).toEqual({ kind: 'refused' });
      expect(await f.settle(id, 15n * TOKEN_NANOS)).toMatchObject({ kind: 'settled' });
      expect(await f.admit()).toMatchObject({ reason: 'budget_reached', scope });
      await set(f, 3n, 'none');
      expect(await f.admit()).toMatchObject({ kind: 'held' });
    });

    it('is in force for every process', async () => {
      const f = fixture();
      const other = await f.open();
      await set(f, 1n, 4n * TOKEN_NANOS);
      expect(await other.admit([f.request()])).toMatchObject([{ kind: 'held', outputTokens: 4 }]);
      expect(await f.admit()).toMatchObject({ reason: 'credit_held', scope });
    });
  });

  it('applies a budget to its own key or tenant only', async () => {
    const f = fixture();
    const [otherKey, otherTenant] = [newId('key'), newId('ten')];
    await f.setBalance(PLENTY_NANOS, { budgets: [{ keyId: otherKey, version: 1n, nanos: 0n }] });
    await f.setBalance(PLENTY_NANOS, { tenantId: otherTenant, budgets: [{ keyId: null, version: 1n, nanos: 0n }] });
    expect(await f.admit()).toMatchObject({ kind: 'held', outputTokens: 10 });
    expect(await f.admit(f.request({ keyId: otherKey }))).toMatchObject({ reason: 'budget_reached', scope: 'key' });
  });

  it('applies several budgets of one call by their versions, also repeated ones', async () => {
    const f = fixture();
    const keyId = f.keyId;
    await f.setBalance(PLENTY_NANOS, {
      budgets: [
        { keyId, version: 2n, nanos: 6n * TOKEN_NANOS },
        { keyId, version: 1n, nanos: TOKEN_NANOS },
        { keyId: null, version: 1n, nanos: 8n * TOKEN_NANOS },
        { keyId, version: 2n, nanos: 3n * TOKEN_NANOS },
      ],
    });
    expect(await f.admit()).toMatchObject({ kind: 'held', outputTokens: 6 });
    expect(await f.admit(f.request({ keyId: newId('key') }))).toMatchObject({ kind: 'held', outputTokens: 2 });
  });
}
