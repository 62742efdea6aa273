import { newId } from '@tollgate/contracts';
import { DEFAULT_LEASE_MS } from '../admission-store';
import { START_MS, TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

/** Expired holds, unconfirmed settlements, and what the ledger has confirmed. */
export function booksSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(100n * TOKEN_NANOS));

  it('settles an expired stream at its last recorded progress, and hands it out at once', async () => {
    const f = fixture();
    const keyLimits = { ...WIDE, tokensPerMinute: 100, concurrency: 1 };
    const request = f.request({ keyLimits, wantOutputTokens: 50 });
    await f.admit(request);
    f.nowMs += 1_000;
    await f.progress(request.draft.id, 3);
    f.nowMs += 1_000;
    await f.progress(request.draft.id, 7);
    const endedAt = new Date(f.nowMs).toISOString();
    f.nowMs += DEFAULT_LEASE_MS;
    const record = {
      ...request.draft,
      promptTokens: 0,
      cachedTokens: 0,
      completionTokens: 7,
      costNanos: String(7n * TOKEN_NANOS),
      overrunNanos: '0',
      estimated: true,
      outcome: 'expired',
      endedAt,
    };
    expect(await f.sweep()).toEqual([record]);
    expect(await f.sweep()).toEqual([]);
    expect(await f.sums()).toMatchObject({ pendingNanos: 0n, settledNanos: 7n * TOKEN_NANOS, settledHolds: 1 });
    // The gateway was alive after all: the first result stands.
    expect(await f.settle(request.draft.id, 50n * TOKEN_NANOS)).toEqual({
      kind: 'settled',
      repeated: true,
      event: record,
    });
    // Its concurrency slot and its unused tokens are free again.
    f.nowMs += 60_000;
    expect(await f.admit(f.request({ keyLimits }))).toMatchObject({ kind: 'held' });
  });

  it('keeps what was recorded when a heartbeat brings no delivery', async () => {
    const f = fixture();
    const id = await f.hold();
    await f.progress(id, 4);
    await f.progress(id, null);
    f.nowMs += DEFAULT_LEASE_MS;
    expect(await f.sweep()).toMatchObject([{ id, completionTokens: 4 }]);
  });

  it('voids an expired hold without any delivery', async () => {
    const f = fixture();
    const id = await f.hold();
    f.nowMs += DEFAULT_LEASE_MS;
    expect(await f.sweep()).toEqual([]);
    expect(await f.sums()).toMatchObject({ pendingNanos: 0n, pendingHolds: 0, settledHolds: 0 });
    expect(await f.settle(id, 0n)).toEqual({ kind: 'forbidden' });
  });

  it('never charges an expired hold more than it held', async () => {
    const f = fixture();
    const id = await f.hold();
    await f.progress(id, 12);
    f.nowMs += DEFAULT_LEASE_MS;
    expect(await f.sweep()).toMatchObject([
      { id, completionTokens: 12, costNanos: String(10n * TOKEN_NANOS), overrunNanos: String(2n * TOKEN_NANOS) },
    ]);
  });

  it('hands out a settled hold that is not released again after each waiting time, unchanged', async () => {
    const f = fixture();
    const id = await f.hold();
    const event = f.event(id, TOKEN_NANOS);
    await f.store.settle([{ event }]);
    f.nowMs += 59_999;
    expect(await f.sweep(60_000)).toEqual([]);
    f.nowMs += 1;
    expect(await f.sweep(60_000)).toEqual([event]);
    f.nowMs += 59_999;
    expect(await f.sweep(60_000)).toEqual([]);
    f.nowMs += 1;
    expect(await f.sweep(60_000)).toEqual([event]);
    await f.setBalance(99n * TOKEN_NANOS, { releases: [id] });
    f.nowMs += 60_000;
    expect(await f.sweep(60_000)).toEqual([]);
  });

  it('hands out at most the requested number of holds, the oldest first', async () => {
    const f = fixture();
    // Older than anything that other tests may have left behind.
    f.nowMs = START_MS - 86_400_000;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      f.nowMs += 1;
      ids.push(await f.hold());
      await f.settle(ids[i]!, TOKEN_NANOS);
    }
    f.nowMs += 1_000;
    const first = await f.store.sweep({ limit: 3, confirmAfterMs: 1_000 });
    expect(first.map((event) => event.id).sort()).toEqual(ids.slice(0, 3).sort());
    expect((await f.store.sweep({ limit: 3, confirmAfterMs: 1_000 })).map((event) => event.id).sort()).toEqual(
      ids.slice(3).sort(),
    );
  });

  it('hands out each expired or unconfirmed hold to one of many sweepers', async () => {
    const f = fixture();
    const stores = [f.store, await f.open(), await f.open()];
    const expired = await Promise.all(Array.from({ length: 4 }, () => f.hold()));
    const settled = await Promise.all(Array.from({ length: 4 }, () => f.hold()));
    for (const id of expired) await f.progress(id, 1);
    for (const id of settled) await f.settle(id, TOKEN_NANOS);
    f.nowMs += 60_000;
    const handedOut = (await Promise.all(stores.map((store) => f.sweep(60_000, store)))).flat();
    expect(handedOut.map((event) => event.id).sort()).toEqual([...expired, ...settled].sort());
    expect(await f.sums()).toMatchObject({ settledHolds: 8, settledNanos: 8n * TOKEN_NANOS });
  });

  it('replaces an older balance by a newer one and never the reverse, and always applies releases', async () => {
    const f = fixture();
    const ids = [await f.hold(), await f.hold()];
    for (const id of ids) await f.settle(id, 10n * TOKEN_NANOS);
    const { tenantId } = f;
    const newer = { tenantId, version: 9n, balanceNanos: 80n * TOKEN_NANOS, releases: [ids[1]!], suspended: false };
    const older = { tenantId, version: 8n, balanceNanos: 90n * TOKEN_NANOS, releases: [ids[0]!], suspended: true };
    await f.store.applyBalanceUpdates([newer]);
    expect(await f.sums()).toMatchObject({
      version: 9n,
      balanceNanos: 80n * TOKEN_NANOS,
      settledNanos: 10n * TOKEN_NANOS,
    });
    await f.store.applyBalanceUpdates([older, older, newer]);
    await f.store.applyBalanceUpdates([older]);
    expect(await f.sums()).toMatchObject({
      version: 9n,
      balanceNanos: 80n * TOKEN_NANOS,
      settledNanos: 0n,
      settledHolds: 0,
    });
    expect(await f.admit()).toMatchObject({ kind: 'held' });
  });

  it('ignores the release of a hold that is not settled, or belongs to another tenant', async () => {
    const f = fixture();
    const [pending, settled] = [await f.hold(), await f.hold()];
    await f.settle(settled, TOKEN_NANOS);
    await f.setBalance(100n * TOKEN_NANOS, { releases: [pending, 'req_never'] });
    await f.setBalance(0n, { releases: [settled, pending], tenantId: newId('ten') });
    expect(await f.sums()).toMatchObject({ pendingHolds: 1, settledHolds: 1, settledNanos: TOKEN_NANOS });
    expect(await f.settle(pending, TOKEN_NANOS)).toMatchObject({ kind: 'settled', repeated: false });
  });

  it('suspends and resumes a tenant by the newest balance update', async () => {
    const f = fixture();
    await f.setBalance(100n * TOKEN_NANOS, { suspended: true });
    expect(await f.admit()).toMatchObject({ reason: 'tenant_suspended' });
    await f.setBalance(100n * TOKEN_NANOS);
    expect(await f.admit()).toMatchObject({ kind: 'held' });
  });

  it('extends the running stream of a suspended tenant as that of another', async () => {
    const f = fixture();
    await f.setBalance(100n * TOKEN_NANOS);
    const id = await f.hold();
    await f.setBalance(100n * TOKEN_NANOS, { suspended: true });
    expect(await f.admit()).toMatchObject({ reason: 'tenant_suspended' });
    const wanted = { id, tenantId: f.tenantId, wantNanos: 5n * TOKEN_NANOS, minNanos: TOKEN_NANOS };
    expect(await f.store.extend([wanted])).toMatchObject([{ kind: 'extended', grantedNanos: 5n * TOKEN_NANOS }]);
  });

  it('names the oldest settled hold that the books do not include', async () => {
    const f = fixture();
    await f.setBalance(100n * TOKEN_NANOS);
    const ids = [await f.hold(), await f.hold(), await f.hold()];
    expect((await f.sums()).oldestSettledId).toBeNull();
    await f.settle(ids[2]!, TOKEN_NANOS);
    await f.settle(ids[1]!, TOKEN_NANOS);
    expect((await f.sums()).oldestSettledId).toBe(ids[1]);
  });

  it('lists the holds of a tenant in ascending pages, with state, amount and time since the heartbeat', async () => {
    const f = fixture();
    await f.setBalance(100n * TOKEN_NANOS);
    const ids = [await f.hold(), await f.hold(), await f.hold()];
    await f.settle(ids[1]!, 3n * TOKEN_NANOS);
    f.nowMs += 4_000;
    await f.progress(ids[2]!, 5);
    f.nowMs += 500;
    const all = [
      { id: ids[0], state: 'pending', nanos: 10n * TOKEN_NANOS, quietMs: 4_500 },
      { id: ids[1], state: 'settled', nanos: 3n * TOKEN_NANOS, quietMs: 4_500 },
      { id: ids[2], state: 'pending', nanos: 10n * TOKEN_NANOS, quietMs: 500 },
    ];
    const { tenantId } = f;
    expect(await f.store.holds({ tenantId, limit: 10 })).toEqual(all);
    expect(await f.store.holds({ tenantId, limit: 2 })).toEqual(all.slice(0, 2));
    expect(await f.store.holds({ tenantId, after: ids[0]!, limit: 1 })).toEqual(all.slice(1, 2));
    expect(await f.store.holds({ tenantId: newId('ten'), limit: 1 })).toEqual([]);
    const [quiet, ended, streaming] = await f.store.holds({ tenantId, limit: 10, withRunning: true });
    expect(quiet!.running).toMatchObject({ draft: { id: ids[0], tenantId }, delivered: null });
    expect(ended).toEqual(all[1]);
    expect(streaming!.running!.delivered).toMatchObject({ completionTokens: 5, costNanos: expect.any(BigInt) });
    const served = { model: 'fallback', price: streaming!.running!.draft.price };
    const counts = { promptTokens: 3, cachedTokens: 1, completionTokens: 6, costNanos: TOKEN_NANOS };
    await f.store.progress([{ id: ids[2]!, tenantId, delivered: { ...counts, served } }]);
    const [later] = await f.store.holds({ tenantId, after: ids[1]!, limit: 1, withRunning: true });
    expect(later!.running).toMatchObject({ draft: { id: ids[2], model: 'fallback' }, delivered: counts });
  });

  it('lists tenants in ascending pages, and a single one by its id', async () => {
    const f = fixture();
    const ids = [newId('ten'), newId('ten'), newId('ten')];
    await f.store.applyBalanceUpdates(
      [2, 0, 1].map((i) => ({
        tenantId: ids[i]!,
        version: 1n,
        balanceNanos: BigInt(i),
        releases: [],
        suspended: false,
      })),
    );
    const page = await f.store.snapshot({ after: f.tenantId, limit: 2 });
    expect(page.map((row) => [row.tenantId, row.balanceNanos])).toEqual([
      [ids[0], 0n],
      [ids[1], 1n],
    ]);
    expect((await f.store.snapshot({ after: ids[1]!, limit: 2 })).map((row) => row.tenantId)).toEqual([ids[2]]);
    expect(await f.store.snapshot({ tenantId: newId('ten'), limit: 5 })).toEqual([]);
  });
}
