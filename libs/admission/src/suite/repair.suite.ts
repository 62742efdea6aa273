import { newId } from '@tollgate/contracts';
import type { Budget, Repair } from '../admission-store';
import { TOKEN_NANOS, useFixture, type OpenStore } from './store.fixture';

const FORGED = 999_999_999n;
const MONTH = '2026-05';

/** A tenant's state, recomputed from the books, whatever was written into it. */
export function repairSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  const update = (version: bigint, tokens: bigint, more: { suspended?: boolean; releases?: string[] } = {}) =>
    fixture().store.applyBalanceUpdates([
      {
        tenantId: fixture().tenantId,
        version,
        balanceNanos: tokens * TOKEN_NANOS,
        releases: [],
        suspended: false,
        ...more,
      },
    ]);
  const repair = (version: bigint, tokens: bigint, more: Partial<Repair> = {}) =>
    fixture().store.repair({
      tenantId: fixture().tenantId,
      version,
      balanceNanos: tokens * TOKEN_NANOS,
      suspended: false,
      budgets: [],
      spent: [],
      releases: [],
      ...more,
    });
  const affords = (tokens: number, more = {}) =>
    fixture().admit(fixture().request({ wantOutputTokens: tokens, minOutputTokens: tokens, ...more }));

  it('removes a forged version with its credit, and later applies a genuine top-up', async () => {
    await update(3n, 10n);
    await update(FORGED, 1_000_000n);
    expect(await affords(100_000)).toMatchObject({ kind: 'held' });
    // No balance update can undo it.
    await update(4n, 20n);
    expect(await fixture().sums()).toMatchObject({ version: FORGED });
    expect(await repair(4n, 20n)).toEqual({ droppedHolds: 0 });
    expect(await fixture().sums()).toMatchObject({ version: 4n, balanceNanos: 20n * TOKEN_NANOS, pendingHolds: 1 });
    expect(await affords(1)).toMatchObject({ kind: 'refused', reason: 'credit_held' });
    await update(5n, 100_050n);
    expect(await affords(50)).toMatchObject({ kind: 'held' });
  });

  it('removes a suspension that the books do not have', async () => {
    await update(3n, 10n);
    await update(FORGED, 10n, { suspended: true });
    expect(await affords(1)).toMatchObject({ reason: 'tenant_suspended' });
    expect(await fixture().sums()).toMatchObject({ suspended: true });
    await repair(3n, 10n);
    expect(await affords(1)).toMatchObject({ kind: 'held' });
  });

  it('keeps every hold: running ones extend and settle as before, settled ones await their release', async () => {
    const f = fixture();
    await update(1n, 100n);
    const [running, settled, released] = [await f.hold(), await f.hold(), await f.hold()];
    await f.settle(settled, 7n * TOKEN_NANOS);
    await f.settle(released, 9n * TOKEN_NANOS);
    // The books have gathered the last one, and its balance update is on its way. A running request is never released.
    await repair(2n, 91n, { releases: [released, running] });
    const after = {
      version: 2n,
      balanceNanos: 91n * TOKEN_NANOS,
      settledNanos: 7n * TOKEN_NANOS,
      pendingNanos: 10n * TOKEN_NANOS,
      pendingHolds: 1,
      settledHolds: 1,
      inFlight: 1n,
    };
    expect(await f.sums()).toMatchObject(after);
    await update(2n, 91n, { releases: [released] });
    expect(await f.sums()).toMatchObject(after);
    const { tenantId } = f;
    expect(await f.store.extend([{ id: running, tenantId, wantNanos: 5n * TOKEN_NANOS, minNanos: 1n }])).toMatchObject([
      { kind: 'extended' },
    ]);
    expect(await f.settle(running, 15n * TOKEN_NANOS)).toMatchObject({ kind: 'settled' });
    f.nowMs += 120_000;
    expect((await f.sweep()).map(({ id }) => id).sort()).toEqual([running, settled].sort());
    await update(3n, 69n, { releases: [running, settled] });
    expect(await f.sums()).toMatchObject({ settledNanos: 0n, pendingNanos: 0n, inFlight: 0n });
    expect(await affords(69)).toMatchObject({ kind: 'held' });
  });

  it('leaves expiry unchanged: an expired hold is charged what it recorded', async () => {
    const f = fixture();
    await update(1n, 100n);
    const id = await f.hold();
    await f.progress(id, 4);
    await repair(1n, 100n);
    f.nowMs += 11_000;
    expect(await f.sweep()).toMatchObject([{ id, outcome: 'expired', costNanos: String(4n * TOKEN_NANOS) }]);
    expect(await f.sums()).toMatchObject({ settledNanos: 4n * TOKEN_NANOS, pendingNanos: 0n });
  });

  it('is not undone by balance updates of older versions or of its own version', async () => {
    await repair(5n, 50n);
    await update(4n, 1_000n);
    await update(5n, 1_000n);
    expect(await fixture().sums()).toMatchObject({ version: 5n, balanceNanos: 50n * TOKEN_NANOS });
    await update(6n, 60n);
    expect(await fixture().sums()).toMatchObject({ version: 6n, balanceNanos: 60n * TOKEN_NANOS });
  });

  it('removes withdrawals that the books do not have, so their credit is available again', async () => {
    const f = fixture();
    await update(1n, 100n);
    const { tenantId } = f;
    expect(await f.store.withdraw({ tenantId, version: FORGED, nanos: 90n * TOKEN_NANOS })).toEqual({
      kind: 'withdrawn',
    });
    expect(await f.sums()).toMatchObject({ balanceNanos: 10n * TOKEN_NANOS, withdrawnNanos: 90n * TOKEN_NANOS });
    await repair(1n, 100n);
    expect(await f.sums()).toMatchObject({ balanceNanos: 100n * TOKEN_NANOS, withdrawnNanos: 0n });
    expect(await f.store.withdraw({ tenantId, version: 2n, nanos: 100n * TOKEN_NANOS })).toEqual({ kind: 'withdrawn' });
  });

  it('leaves only the budgets of the books, whatever versions were stored', async () => {
    const f = fixture();
    await f.setBalance(1_000n * TOKEN_NANOS);
    const forged = (keyId: string | null): Budget => ({ keyId, version: FORGED, nanos: 0n });
    await f.store.applyBalanceUpdates([
      {
        tenantId: f.tenantId,
        version: 2n,
        balanceNanos: 1_000n * TOKEN_NANOS,
        releases: [],
        suspended: false,
        budgets: [forged(null), forged(f.keyId)],
      },
    ]);
    expect(await affords(1)).toMatchObject({ reason: 'budget_reached' });
    await repair(2n, 1_000n, { budgets: [{ keyId: f.keyId, version: 3n, nanos: 20n * TOKEN_NANOS }] });
    expect(await affords(21)).toMatchObject({ kind: 'held', outputTokens: 20 });
    await f.setBalance(1_000n * TOKEN_NANOS, { budgets: [{ keyId: f.keyId, version: 4n, nanos: 'none' }] });
    expect(await affords(100)).toMatchObject({ kind: 'held' });
  });

  it('limits what was spent in the month to between metering’s sum and that plus what is settled here', async () => {
    const f = fixture();
    const budget = { tenantBudgetNanos: 100n * TOKEN_NANOS };
    await update(1n, 1_000n);
    await f.settle(await f.hold(), 10n * TOKEN_NANOS);
    const spent = (tokens: bigint) => ({ spent: [{ month: MONTH, tenantNanos: tokens * TOKEN_NANOS, keys: [] }] });
    await repair(1n, 1_000n, spent(60n));
    expect(await affords(41, budget)).toMatchObject({ kind: 'held', outputTokens: 40 });
    f.nowMs += 11_000;
    await f.sweep();
    // 60 is stored: more than metering and the settled hold can explain.
    await repair(1n, 1_000n, spent(5n));
    expect(await affords(86, budget)).toMatchObject({ kind: 'held', outputTokens: 85 });
  });

  it('creates an unknown tenant', async () => {
    const f = fixture();
    const tenantId = newId('ten');
    await f.store.repair({
      tenantId,
      version: 3n,
      balanceNanos: 5n,
      suspended: false,
      budgets: [],
      spent: [],
      releases: [],
    });
    expect(await f.sums(tenantId)).toMatchObject({ version: 3n, balanceNanos: 5n, withdrawnNanos: 0n });
  });

  it('is exact beyond the integers of a double', async () => {
    const f = fixture();
    const { tenantId } = f;
    const balanceNanos = 3_999_999_999_999_999_999n;
    await f.store.repair({
      tenantId,
      version: 3n,
      balanceNanos,
      suspended: false,
      budgets: [],
      spent: [],
      releases: [],
    });
    expect(await f.sums()).toMatchObject({ version: 3n, balanceNanos });
  });
}
