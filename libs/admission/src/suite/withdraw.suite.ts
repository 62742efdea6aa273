import { newId } from '@tollgate/contracts';
import { AdmissionClient } from '../client/admission-client';
import { TOKEN_NANOS, useFixture, type OpenStore } from './store.fixture';

const CREDIT = 100n * TOKEN_NANOS;

/** Refunds while requests run. */
export function withdrawSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  const withdraw = (version: bigint, tokens: bigint, store = fixture().store) =>
    store.withdraw({ tenantId: fixture().tenantId, version, nanos: tokens * TOKEN_NANOS });
  const update = (version: bigint, tokens: bigint) =>
    fixture().store.applyBalanceUpdates([
      { tenantId: fixture().tenantId, version, balanceNanos: tokens * TOKEN_NANOS, releases: [], suspended: false },
    ]);
  const affords = (tokens: number) =>
    fixture().admit(fixture().request({ wantOutputTokens: tokens, minOutputTokens: tokens }));
  beforeEach(() => fixture().setBalance(CREDIT));

  it('takes available credit, and leaves what requests hold or owe', async () => {
    const f = fixture();
    const settled = await f.hold({ wantOutputTokens: 10 });
    await f.settle(settled, 10n * TOKEN_NANOS);
    await f.hold({ wantOutputTokens: 30 });
    expect(await withdraw(2n, 61n)).toEqual({ kind: 'refused', availableNanos: 60n * TOKEN_NANOS });
    expect(await withdraw(2n, 60n)).toEqual({ kind: 'withdrawn' });
    expect(await affords(1)).toMatchObject({ kind: 'refused', reason: 'credit_held' });
    expect(await f.sums()).toMatchObject({ settledNanos: 10n * TOKEN_NANOS, pendingNanos: 30n * TOKEN_NANOS });
  });

  it('stays withdrawn when the balance update includes the debit', async () => {
    await withdraw(2n, 60n);
    await update(2n, 40n);
    expect(await fixture().sums()).toMatchObject({ version: 2n, balanceNanos: 40n * TOKEN_NANOS });
    expect(await affords(41)).toMatchObject({ kind: 'held', outputTokens: 40 });
  });

  it('is available again when the version arrives without the debit', async () => {
    await withdraw(2n, 60n);
    await update(3n, 100n);
    expect(await affords(100)).toMatchObject({ kind: 'held' });
  });

  it('is not undone by a late balance of an older version', async () => {
    await withdraw(5n, 60n);
    await update(4n, 90n);
    expect(await fixture().sums()).toMatchObject({ version: 4n, balanceNanos: 30n * TOKEN_NANOS });
    expect(await withdraw(6n, 31n)).toMatchObject({ kind: 'refused' });
    expect(await withdraw(6n, 20n)).toEqual({ kind: 'withdrawn' });
    await update(5n, 30n);
    expect(await fixture().sums()).toMatchObject({ version: 5n, balanceNanos: 10n * TOKEN_NANOS });
    await update(6n, 10n);
    expect(await fixture().sums()).toMatchObject({ version: 6n, balanceNanos: 10n * TOKEN_NANOS });
  });

  it('is replaced by a repeat for the same version', async () => {
    expect(await withdraw(2n, 70n)).toEqual({ kind: 'withdrawn' });
    expect(await withdraw(2n, 101n)).toEqual({ kind: 'refused', availableNanos: CREDIT });
    expect(await withdraw(2n, 80n)).toEqual({ kind: 'withdrawn' });
    expect(await fixture().sums()).toMatchObject({ balanceNanos: 20n * TOKEN_NANOS });
  });

  it('is overtaken when the version is known already', async () => {
    await update(2n, 100n);
    expect(await withdraw(2n, 1n)).toEqual({ kind: 'overtaken' });
    expect(await withdraw(1n, 1n)).toEqual({ kind: 'overtaken' });
    expect(await affords(100)).toMatchObject({ kind: 'held' });
  });

  it('refuses an unknown tenant, which has nothing to withdraw', async () => {
    const nobody = { tenantId: newId('ten'), version: 1n, nanos: 1n };
    expect(await fixture().store.withdraw(nobody)).toEqual({ kind: 'refused', availableNanos: 0n });
  });

  it('is exact for amounts beyond the integers of a double', async () => {
    const f = fixture();
    const [large, part] = [3_999_999_999_999_999_999n, 3_999_999_999_999_999_998n];
    await f.store.applyBalanceUpdates([
      { tenantId: f.tenantId, version: 2n, balanceNanos: large, releases: [], suspended: false },
    ]);
    const { tenantId } = f;
    expect(await f.store.withdraw({ tenantId, version: 3n, nanos: large + 1n })).toEqual({
      kind: 'refused',
      availableNanos: large,
    });
    expect(await f.store.withdraw({ tenantId, version: 3n, nanos: part })).toEqual({ kind: 'withdrawn' });
    expect((await f.sums()).balanceNanos).toBe(1n);
  });

  it('never spends anything twice among requests of several processes', async () => {
    const f = fixture();
    const clients = [new AdmissionClient(f.store), new AdmissionClient(await f.open())];
    let spent = 0n;
    let withdrawn = 0n;
    const requests = async (client: AdmissionClient) => {
      for (let i = 0; i < 20; i++) {
        const request = f.request({ wantOutputTokens: 2, minOutputTokens: 2 });
        const result = await client.admit(request);
        if (result.kind !== 'held') continue;
        await client.settle({ event: f.event(request.draft.id, result.holdNanos) });
        spent += result.holdNanos;
      }
    };
    const withdrawals = async () => {
      for (let version = 2n; version < 22n; version++) {
        if ((await withdraw(version, 3n)).kind === 'withdrawn') withdrawn += 3n * TOKEN_NANOS;
      }
    };
    await Promise.all([...clients.map(requests), ...clients.map(requests), withdrawals()]);
    await Promise.all(clients.map((client) => client.close()));
    const { balanceNanos, settledNanos } = await f.sums();
    expect([balanceNanos, settledNanos]).toEqual([CREDIT - withdrawn, spent]);
    expect(balanceNanos - settledNanos).toBeGreaterThanOrEqual(0n);
    expect(balanceNanos - settledNanos).toBeLessThan(3n * TOKEN_NANOS);
  });
}
