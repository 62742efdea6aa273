import { newId } from '@tollgate/contracts';
import { DEFAULT_LEASE_MS } from '../admission-store';
import { TOKEN_NANOS, useFixture, type OpenStore } from './store.fixture';

/** The amounts of a hold from admission to end. Its transitions are tested in states.suite.ts. */
export function holdsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(1_000n * TOKEN_NANOS));

  it('repeats an admission by its id with the same result, and changes nothing', async () => {
    const f = fixture();
    const request = f.request({ keyLimits: { requestsPerMinute: 1, tokensPerMinute: 10, concurrency: 1 } });
    const first = await f.admit(request);
    const sums = await f.sums();
    expect(await f.admit(request)).toEqual(first);
    expect(await f.store.admit([request, request])).toEqual([first, first]);
    expect(await f.sums()).toEqual(sums);
  });

  it('admits an id once that is twice in one call', async () => {
    const f = fixture();
    const request = f.request();
    const [first, second] = await f.store.admit([request, request]);
    expect(first).toMatchObject({ kind: 'held', holdNanos: 10n * TOKEN_NANOS });
    expect(second).toEqual(first);
    expect(await f.sums()).toMatchObject({ pendingHolds: 1, pendingNanos: 10n * TOKEN_NANOS });
  });

  it('refuses the id of an ended hold, or of a hold of another key', async () => {
    const f = fixture();
    const [settled, pending] = [await f.hold(), await f.hold()];
    await f.settle(settled, 0n);
    const results = await f.store.admit([
      f.request({ id: settled }),
      f.request({ id: pending, keyId: newId('key') }),
      f.request(),
    ]);
    expect(results.map((result) => result instanceof RangeError)).toEqual([true, true, false]);
    expect(await f.sums()).toMatchObject({ pendingHolds: 2, settledHolds: 1 });
  });

  it('charges the cost of a settlement, gives back the remainder and keeps the record', async () => {
    const f = fixture();
    const id = await f.hold();
    const event = f.event(id, 3n * TOKEN_NANOS);
    expect(await f.store.settle([{ event }])).toEqual([{ kind: 'settled', repeated: false, event }]);
    expect(await f.sums()).toMatchObject({
      pendingNanos: 0n,
      pendingHolds: 0,
      settledNanos: 3n * TOKEN_NANOS,
      settledHolds: 1,
    });
  });

  it('returns the first result to a repeated settlement, whatever the repeat contains', async () => {
    const f = fixture();
    const id = await f.hold();
    const first = f.event(id, 3n * TOKEN_NANOS);
    await f.store.settle([{ event: first }]);
    const other = f.event(id, 9n * TOKEN_NANOS, { outcome: 'client_closed' });
    expect(await f.store.settle([{ event: other }, { event: first }])).toEqual(
      Array(2).fill({ kind: 'settled', repeated: true, event: first }),
    );
    expect(await f.sums()).toMatchObject({ settledNanos: 3n * TOKEN_NANOS, settledHolds: 1 });
  });

  it('charges a settlement once that is twice in one call, whatever the later one contains', async () => {
    const f = fixture();
    const event = f.event(await f.hold(), 3n * TOKEN_NANOS);
    const above = f.event(event.id, 11n * TOKEN_NANOS);
    const settled = { kind: 'settled', event };
    expect(await f.store.settle([{ event }, { event }, { event: above }])).toEqual([
      { ...settled, repeated: false },
      { ...settled, repeated: true },
      { ...settled, repeated: true },
    ]);
    expect(await f.sums()).toMatchObject({ settledNanos: 3n * TOKEN_NANOS, pendingNanos: 0n });
  });

  it('refuses only the settlement whose cost is above its hold, and settles the others of the call', async () => {
    const f = fixture();
    const ids = [await f.hold(), await f.hold(), await f.hold()];
    const events = [
      f.event(ids[0]!, TOKEN_NANOS),
      f.event(ids[1]!, 10n * TOKEN_NANOS + 1n),
      f.event(ids[2]!, 10n * TOKEN_NANOS),
    ];
    const results = await f.store.settle(events.map((event) => ({ event })));
    expect(results[0]).toMatchObject({ kind: 'settled', repeated: false });
    expect(results[1]).toBeInstanceOf(RangeError);
    expect(results[2]).toMatchObject({ kind: 'settled', repeated: false });
    expect(await f.sums()).toMatchObject({ pendingHolds: 1, settledHolds: 2, settledNanos: 11n * TOKEN_NANOS });
    expect(await f.settle(ids[1]!, 10n * TOKEN_NANOS)).toMatchObject({ kind: 'settled', repeated: false });
  });

  it('extends by the wanted amount, or by the remainder if that is enough, or by nothing', async () => {
    const f = fixture();
    const id = await f.hold({ wantOutputTokens: 900 });
    const extend = async (want: bigint, min: bigint) =>
      (
        await f.store.extend([{ id, tenantId: f.tenantId, wantNanos: want * TOKEN_NANOS, minNanos: min * TOKEN_NANOS }])
      )[0];
    expect(await extend(60n, 60n)).toEqual({
      kind: 'extended',
      grantedNanos: 60n * TOKEN_NANOS,
      holdNanos: 960n * TOKEN_NANOS,
    });
    expect(await extend(60n, 41n)).toEqual({ kind: 'refused' });
    expect(await extend(60n, 40n)).toEqual({
      kind: 'extended',
      grantedNanos: 40n * TOKEN_NANOS,
      holdNanos: 1_000n * TOKEN_NANOS,
    });
    expect(await extend(1n, 1n)).toEqual({ kind: 'refused' });
    expect(await f.sums()).toMatchObject({ pendingNanos: 1_000n * TOKEN_NANOS });
    expect(await f.settle(id, 1_000n * TOKEN_NANOS)).toMatchObject({ kind: 'settled', repeated: false });
  });

  it('extends within the default budgets of the admission unless the operator set others', async () => {
    const f = fixture();
    for (const budget of [{ keyBudgetNanos: 15n * TOKEN_NANOS }, { tenantBudgetNanos: 30n * TOKEN_NANOS }]) {
      const id = await f.hold({ ...budget, keyId: newId('key') });
      const extend = { id, tenantId: f.tenantId, wantNanos: 11n * TOKEN_NANOS, minNanos: TOKEN_NANOS };
      expect((await f.store.extend([extend]))[0]).toMatchObject({ kind: 'extended', grantedNanos: 5n * TOKEN_NANOS });
      expect((await f.store.extend([extend]))[0]).toEqual({ kind: 'refused' });
    }
  });

  it('shares the remainder between several extensions of one call, in their order', async () => {
    const f = fixture();
    await f.setBalance(30n * TOKEN_NANOS);
    const ids = [await f.hold(), await f.hold()];
    const extend = (id: string) => ({ id, tenantId: f.tenantId, wantNanos: 8n * TOKEN_NANOS, minNanos: TOKEN_NANOS });
    expect(await f.store.extend([extend(ids[1]!), extend(ids[0]!)])).toMatchObject([
      { kind: 'extended', grantedNanos: 8n * TOKEN_NANOS },
      { kind: 'extended', grantedNanos: 2n * TOKEN_NANOS },
    ]);
  });

  it('removes a void hold with everything that it held', async () => {
    const f = fixture();
    const id = await f.hold();
    expect(await f.void(id)).toBe(true);
    expect(await f.sums()).toMatchObject({ pendingNanos: 0n, pendingHolds: 0, settledHolds: 0 });
    expect(await f.void(id)).toBe(false);
    expect(await f.settle(id, 0n)).toEqual({ kind: 'forbidden' });
  });

  it('keeps a hold for its lease after admission and after each heartbeat, and not longer', async () => {
    const f = fixture();
    const id = await f.hold();
    f.nowMs += DEFAULT_LEASE_MS - 1;
    expect(await f.sweep()).toEqual([]);
    expect(await f.progress(id, null)).toBe(true);
    f.nowMs += DEFAULT_LEASE_MS - 1;
    await f.sweep();
    expect(await f.sums()).toMatchObject({ pendingHolds: 1 });
    f.nowMs += 1;
    await f.sweep();
    expect(await f.sums()).toMatchObject({ pendingHolds: 0, pendingNanos: 0n, settledHolds: 0 });
    expect(await f.progress(id, 1)).toBe(false);
  });

  it('charges an expired hold what it held if more was delivered, also more than 64 bits have', async () => {
    const f = fixture();
    const id = await f.hold();
    const delivered = { promptTokens: 0, cachedTokens: 0, completionTokens: 2, costNanos: 10n ** 20n };
    expect(await f.store.progress([{ id, tenantId: f.tenantId, delivered }])).toEqual([true]);
    const { pendingNanos } = await f.sums();
    f.nowMs += DEFAULT_LEASE_MS;
    const overrunNanos = String(4n * 10n ** 18n - pendingNanos);
    expect(await f.sweep()).toMatchObject([{ id, costNanos: String(pendingNanos), overrunNanos }]);
  });

  it('charges an expired hold at the model and price that served it, if they are not those of its draft', async () => {
    const f = fixture();
    const id = await f.hold();
    const { price } = f.event(id, 1n);
    const served = { model: 'another', price: { ...price, version: 'another', outputFemtos: '7' } };
    const delivered = { promptTokens: 0, cachedTokens: 0, completionTokens: 2, costNanos: TOKEN_NANOS };
    const one = { id, tenantId: f.tenantId };
    expect(await f.store.progress([{ ...one, delivered }])).toEqual([true]);
    expect(await f.store.progress([{ ...one, delivered: { ...delivered, served } }])).toEqual([true]);
    f.nowMs += DEFAULT_LEASE_MS;
    const cost = { costNanos: String(TOKEN_NANOS), overrunNanos: '0', completionTokens: 2, outcome: 'expired' };
    expect(await f.sweep()).toMatchObject([{ id, ...served, ...cost }]);
    expect(await f.sums()).toMatchObject({ pendingHolds: 0, settledHolds: 1, settledNanos: TOKEN_NANOS });
  });

  it('answers empty calls', async () => {
    const { store } = fixture();
    expect(
      await Promise.all([store.admit([]), store.extend([]), store.progress([]), store.settle([]), store.void([])]),
    ).toEqual(Array(5).fill([]));
    await store.applyBalanceUpdates([]);
  });
}
