import { newId } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { eventually, useRedis } from '@tollgate/testing';
import { TOKEN_NANOS } from '../suite/store.fixture';
import { BALANCE, open, refusedAfterMs } from './faults.fixture';

// Unknown tenants are the subject here; each would log a warning.
configureLogging({ level: 'silent', pretty: false });

describe('an emptied Redis', () => {
  const redis = useRedis();
  const empty = () => redis.exec(['redis-cli', '-p', String(redis.port), 'FLUSHALL']);

  it('asks for a tenant’s credit at its first request, once for all that wait, and restores budgets', async () => {
    let asked = 0;
    const budgeted = newId('key');
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: (tenantId) => {
        asked++;
        return Promise.resolve({
          update: {
            tenantId,
            version: 7n,
            balanceNanos: 50n * TOKEN_NANOS,
            releases: [],
            suspended: false,
            budgets: [{ keyId: budgeted, version: 3n, nanos: 5n * TOKEN_NANOS }],
          },
          spent: [
            { month: '2001-01', tenantNanos: 99n * TOKEN_NANOS, keys: [{ keyId: f.keyId, nanos: 99n * TOKEN_NANOS }] },
            {
              month: new Date().toISOString().slice(0, 7),
              tenantNanos: 9n * TOKEN_NANOS,
              keys: [{ keyId: f.keyId, nanos: 8n * TOKEN_NANOS }],
            },
          ],
        });
      },
    });
    await f.setBalance(100n * TOKEN_NANOS);
    const lost = await eventually(() => f.hold());
    await empty();
    const before = asked;
    const requests = Array.from({ length: 5 }, () => f.request({ minOutputTokens: 10 }));
    const results = await Promise.all(requests.map((request) => client.admit(request)));
    expect(results.map((result) => result.kind)).toEqual(Array(5).fill('held'));
    expect(asked - before).toBe(1);
    expect(await f.sums()).toMatchObject({ version: 7n, balanceNanos: 50n * TOKEN_NANOS, pendingHolds: 5 });
    await Promise.all(requests.map(({ draft }) => client.void({ id: draft.id, tenantId: f.tenantId })));
    // 8 of a budget of 10 are spent already.
    expect(await client.admit(f.request({ keyBudgetNanos: 10n * TOKEN_NANOS }))).toMatchObject({ outputTokens: 2 });
    const clamped = f.request({ keyId: budgeted });
    expect(await client.admit(clamped)).toMatchObject({ outputTokens: 5 });
    await client.void({ id: clamped.draft.id, tenantId: f.tenantId });
    // Holds that were lost with the store can no longer be settled.
    expect(await client.settle({ event: f.event(lost, TOKEN_NANOS) })).toEqual({ kind: 'forbidden' });
    // Its holds are swept, although the registry was emptied too.
    const short = await open({ url: redis.url, leaseMs: 1 });
    short.f.tenantId = f.tenantId;
    await short.f.hold();
    await eventually(async () => {
      await f.sweep();
      expect((await f.sums()).pendingHolds).toBe(1);
    });
    await Promise.all([close(), short.close()]);
  });

  it('asks for the credit of a tenant that only looks, and answers from the reply', async () => {
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: (tenantId) =>
        Promise.resolve({
          update: { tenantId, version: 1n, balanceNanos: TOKEN_NANOS, releases: [], suspended: false },
          spent: [],
        }),
    });
    const stranger = f.request({ tenantId: newId('ten') });
    const looks = await Promise.all([1, 2, 3].map(() => client.look(f.lookOf(stranger))));
    expect(looks.map(({ kind }) => kind)).toEqual(['clear', 'clear', 'clear']);
    expect(await client.admit(f.least(stranger))).toMatchObject({ kind: 'held' });
    await close();
  });

  it('refuses with 503, and never with a false 402, while billing does not answer', async () => {
    let told: null | 'nobody' = 'nobody';
    const known = newId('ten');
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: (tenantId) => {
        const update = { tenantId, version: 1n, balanceNanos: BALANCE, releases: [], suspended: false };
        if (tenantId === known) return Promise.resolve({ update, spent: [] });
        return told ? Promise.reject(new Error('billing is down')) : Promise.resolve(null);
      },
    });
    await refusedAfterMs(() => client.admit(f.request()));
    // Other tenants are served meanwhile.
    expect(await client.admit(f.request({ tenantId: known }))).toMatchObject({ kind: 'held' });
    // A balance update alone is not enough: what was spent in the month is not known.
    await f.setBalance(BALANCE);
    await refusedAfterMs(() => client.admit(f.request()));
    // A tenant that the books do not know has no credit.
    told = null;
    f.tenantId = newId('ten');
    expect(await client.admit(f.request())).toMatchObject({ reason: 'credit_exhausted' });
    expect(await client.admit(f.request())).toMatchObject({ reason: 'credit_exhausted' });
    await close();
  });

  it('admits nobody on an old balance update: the books decide, and older updates then change nothing', async () => {
    let tell = (): void => {};
    const told = new Promise<void>((resolve) => (tell = resolve));
    const books = { version: 7n, balanceNanos: 5n * TOKEN_NANOS, releases: [], suspended: false };
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: async (tenantId) => {
        await told;
        return { update: { tenantId, ...books }, spent: [] };
      },
    });
    const update = (version: bigint, balanceNanos: bigint) =>
      f.store.applyBalanceUpdates([{ tenantId: f.tenantId, version, balanceNanos, releases: [], suspended: false }]);
    await update(3n, BALANCE);
    const waiting = client.admit(f.request({ wantOutputTokens: 10, minOutputTokens: 1 }));
    await update(2n, BALANCE);
    tell();
    expect(await waiting).toMatchObject({ kind: 'held', outputTokens: 5 });
    await update(6n, BALANCE);
    expect(await client.admit(f.request({ minOutputTokens: 1 }))).toMatchObject({ reason: 'credit_held' });
    await update(8n, 6n * TOKEN_NANOS);
    expect(await client.admit(f.request({ minOutputTokens: 1 }))).toMatchObject({ kind: 'held', outputTokens: 1 });
    await close();
  });

  it('lets a budget be exceeded by at most what ran or was not yet metered at that moment', async () => {
    const [budget, metered, notMetered, running] = [20n, 5n, 3n, 4n];
    const { f, client, close } = await open({
      url: redis.url,
      onUnknownTenant: (tenantId) =>
        Promise.resolve({
          update: {
            tenantId,
            version: 1n,
            balanceNanos: BALANCE,
            releases: [],
            suspended: false,
            budgets: [{ keyId: null, version: 1n, nanos: budget * TOKEN_NANOS }],
          },
          spent: [{ month: new Date().toISOString().slice(0, 7), tenantNanos: metered * TOKEN_NANOS, keys: [] }],
        }),
    });
    const admit = async (wantOutputTokens: number) => {
      const request = f.request({ wantOutputTokens });
      const result = await client.admit(request);
      if (result.kind !== 'held') throw new Error(result.reason);
      return { id: request.draft.id, storeEpoch: result.storeEpoch, granted: BigInt(result.outputTokens) };
    };
    const settle = ({ id, storeEpoch }: { id: string; storeEpoch?: string | undefined }, tokens: bigint) =>
      client.settle({ event: f.event(id, tokens * TOKEN_NANOS), storeEpoch });
    expect(await settle(await admit(Number(notMetered)), notMetered)).toMatchObject({ kind: 'settled' });
    const hold = await admit(Number(running));
    await empty();
    expect(await settle(hold, running)).toEqual({ kind: 'lost' });
    expect((await admit(100)).granted).toBe(budget - metered);
    expect(await client.admit(f.request())).toMatchObject({ reason: 'credit_held' });
    await close();
  });

  it('distinguishes a lost hold, whose request may go on and report to metering, from one that ended', async () => {
    const { f, close } = await open({ url: redis.url });
    await f.setBalance(BALANCE);
    const { tenantId } = f;
    const hold = async () => {
      const request = f.request();
      const result = await f.admit(request);
      if (result.kind !== 'held') throw new Error(result.reason);
      return { id: request.draft.id, tenantId, storeEpoch: result.storeEpoch };
    };
    const settle = async ({ id, storeEpoch }: { id: string; storeEpoch: string | undefined }) =>
      (await f.store.settle([{ event: f.event(id, TOKEN_NANOS), storeEpoch }]))[0];
    const extend = async (one: { id: string; tenantId: string; storeEpoch: string | undefined }) =>
      (await f.store.extend([{ ...one, wantNanos: 1n, minNanos: 1n }]))[0];
    const progress = async (one: { id: string; tenantId: string; storeEpoch: string | undefined }) =>
      (await f.store.progress([{ ...one, delivered: null }]))[0];

    const [ended, released] = [await hold(), await hold()];
    await f.store.void([ended]);
    await settle(released);
    await f.setBalance(BALANCE, { releases: [released.id] });
    for (const one of [ended, released]) {
      expect(await settle(one)).toEqual({ kind: 'forbidden' });
      expect(await extend(one)).toEqual({ kind: 'forbidden' });
      expect(await progress(one)).toBe(false);
    }

    const lost = await hold();
    const expectLost = async () => {
      expect(await settle(lost)).toEqual({ kind: 'lost' });
      expect(await extend(lost)).toEqual({ kind: 'refused' });
      expect(await progress(lost)).toBe(true);
      expect(await f.store.void([lost])).toEqual([false]);
    };
    await empty();
    // First the tenant is unknown, then its credit is known, then it has other holds.
    await expectLost();
    await f.setBalance(BALANCE);
    await expectLost();
    const young = await hold();
    expect(young.storeEpoch).not.toBe(lost.storeEpoch);
    await expectLost();
    expect(await f.sums()).toMatchObject({ pendingHolds: 1, settledHolds: 0 });
    expect(await settle(young)).toMatchObject({ kind: 'settled', repeated: false });
    await close();
  });
});
