import { AdmissionClient } from '../client/admission-client';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

const FIRED = 400;
const AT_ONCE = 64;

/** Several processes on one store at the same time. */
export function sharingSuite(open: OpenStore): void {
  const fixture = useFixture(open);

  it('admits exactly 20 of 400 requests, 64 at a time, on credit for 20, and overdraws nothing', async () => {
    const f = fixture();
    await f.setBalance(20n * 10n * TOKEN_NANOS);
    const clients = [new AdmissionClient(f.store), new AdmissionClient(await f.open())];
    let fired = 0;
    let ran = 0;
    const worker = async (client: AdmissionClient) => {
      while (fired++ < FIRED) {
        const request = f.request({ minOutputTokens: 10 });
        const result = await client.admit(request);
        if (result.kind === 'refused') continue;
        ran++;
        await client.settle({ event: f.event(request.draft.id, result.holdNanos) });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => worker(clients[i % 2]!)));
    await Promise.all(clients.map((client) => client.close()));
    expect(ran).toBe(20);
    expect(await f.sums()).toMatchObject({ settledNanos: 200n * TOKEN_NANOS, pendingNanos: 0n, settledHolds: 20 });
  });

  it('shares every limit between two processes', async () => {
    const f = fixture();
    await f.setBalance(10n ** 15n);
    const stores = [f.store, await f.open()];
    const keyLimits = { ...WIDE, requestsPerMinute: 25, concurrency: 10 };
    const requests = Array.from({ length: 40 }, () => f.request({ keyLimits }));
    const results = (await Promise.all(requests.map((request, i) => stores[i % 2]!.admit([request])))).flat();
    const held = requests.filter((_, i) => (results[i] as { kind: string }).kind === 'held');
    expect(held).toHaveLength(10);
    // Ended by a process other than the one that admitted it.
    const ended = await Promise.all(
      held.map(({ draft }, i) => stores[(i + 1) % 2]!.void([{ id: draft.id, tenantId: draft.tenantId }])),
    );
    expect(ended.flat()).not.toContain(false);
    const rest = await Promise.all(
      stores.map((store) => store.admit(Array.from({ length: 10 }, () => f.request({ keyLimits })))),
    );
    const reasons = rest.flat().map((result) => (result as { kind: string; reason?: string }).reason ?? 'held');
    expect(reasons.filter((reason) => reason === 'held')).toHaveLength(10);
    expect(await f.sums()).toMatchObject({ pendingHolds: 10 });
  });

  it('ends a hold once that many end at the same time', async () => {
    const f = fixture();
    await f.setBalance(10n ** 15n);
    const stores = [f.store, await f.open(), await f.open()];
    for (let round = 0; round < 10; round++) {
      const id = await f.hold();
      const events = stores.map((_, i) => f.event(id, BigInt(i + 1) * TOKEN_NANOS));
      const [settled, voids] = await Promise.all([
        Promise.all(stores.map(async (store, i) => (await store.settle([{ event: events[i]! }]))[0]!)),
        Promise.all(stores.map(async (store) => (await store.void([{ id, tenantId: f.tenantId }]))[0]!)),
      ]);
      const ends = settled.filter(
        (result) => !(result instanceof Error) && result.kind === 'settled' && !result.repeated,
      ).length;
      expect(ends + voids.filter(Boolean).length).toBe(1);
    }
    await f.sums();
  });

  it('completes all calls over many tenants in any order, from several processes', async () => {
    const f = fixture();
    const stores = [f.store, await f.open(), await f.open()];
    const tenants = Array.from({ length: 12 }, (_, i) => `${f.tenantId}${i}`);
    const calls = Array.from({ length: 30 }, (_, call) => {
      const order = tenants.map((_, i) => tenants[(i * 5 + call * 7) % 12]!);
      return order.map((tenantId) => f.request({ tenantId, outputFemtosPerToken: 0n }));
    });
    await Promise.all(
      calls.map(async (requests, i) => {
        const store = stores[i % 3]!;
        expect(
          (await store.admit(requests)).every((result) => !(result instanceof Error) && result.kind === 'held'),
        ).toBe(true);
        const holds = requests.map(({ draft }) => ({ id: draft.id, tenantId: draft.tenantId }));
        const [half, rest] = [holds.slice(0, 6).reverse(), holds.slice(6)];
        expect(await store.progress(holds.map((hold) => ({ ...hold, delivered: null })))).not.toContain(false);
        const [voids, settled] = await Promise.all([
          store.void(half),
          store.settle(rest.map(({ id, tenantId }) => ({ event: f.event(id, 0n, { tenantId }) }))),
        ]);
        expect(voids).not.toContain(false);
        expect(settled.every((result) => !(result instanceof Error) && result.kind === 'settled')).toBe(true);
      }),
    );
    const sums = await Promise.all(tenants.map((tenantId) => f.sums(tenantId)));
    expect(sums.reduce((count, { settledHolds }) => count + settledHolds, 0)).toBe(180);
    expect(sums.every(({ pendingHolds }) => pendingHolds === 0)).toBe(true);
  });
}
