import { UnavailableError } from '@tollgate/contracts';
import { eventually, useTestDatabase } from '@tollgate/testing';
import { AdmissionClient } from './admission-client';
import { DEFAULT_LEASE_MS, type AdmitRequest, type Progress } from './admission-store';
import { PostgresAdmissionStore } from './postgres/postgres-admission-store';
import { TOKEN_NANOS, useFixture } from './suite/fixture.suite';

const database = useTestDatabase();
const SIGN_INTERVAL_MS = 20;

/** The real store, which also tells what it was asked. */
class WatchedStore extends PostgresAdmissionStore {
  readonly admitCalls: number[] = [];
  readonly progressCalls: string[][] = [];
  failNextProgress = false;

  override admit(requests: readonly AdmitRequest[]) {
    this.admitCalls.push(requests.length);
    return super.admit(requests);
  }

  override async progress(progress: readonly Progress[]) {
    this.progressCalls.push(progress.map(({ id }) => id));
    if (this.failNextProgress) {
      this.failNextProgress = false;
      throw new UnavailableError('the store is away');
    }
    return super.progress(progress);
  }
}

const fixture = useFixture(async ({ now }) => new WatchedStore({ url: database.url, ...(now ? { now } : {}) }));
let client: AdmissionClient;
beforeEach(async () => {
  client = new AdmissionClient(fixture().store, { signOfLifeIntervalMs: SIGN_INTERVAL_MS });
  await fixture().news(10n ** 12n);
});
afterEach(() => client.close());

const watched = () => fixture().store as WatchedStore;

describe('the admission client', () => {
  it('admits a turn of requests in one call, and answers each its own', async () => {
    const f = fixture();
    const requests = Array.from({ length: 50 }, (_, i) => f.request({ wantOutputTokens: i + 1 }));
    const results = await Promise.all(requests.map((request) => client.admit(request)));
    expect(watched().admitCalls).toEqual([50]);
    expect(results.map((result) => result.kind === 'held' && result.outputTokens)).toEqual(
      requests.map(({ wantOutputTokens }) => wantOutputTokens),
    );
  });

  it('carries a request through its life', async () => {
    const f = fixture();
    const request = f.request();
    const { id, tenantId } = request.draft;
    expect(await client.admit(request)).toMatchObject({ kind: 'held' });
    expect(await client.extend({ id, tenantId, wantNanos: 5n, minNanos: 5n })).toMatchObject({
      kind: 'extended',
      grantedNanos: 5n,
    });
    await expect(client.settle({ event: f.event(id, 100n * TOKEN_NANOS) })).rejects.toThrow(RangeError);
    expect(await client.settle({ event: f.event(id, TOKEN_NANOS) })).toMatchObject({
      kind: 'settled',
      repeated: false,
    });
    expect(await client.void({ id, tenantId })).toBe(false);
    await expect(client.admit(request)).rejects.toThrow(RangeError);
  });

  it('keeps what it tracks alive, all in one call, and records what was delivered', async () => {
    const f = fixture();
    const ids = [await f.hold(), await f.hold()];
    let completionTokens = 0;
    const onLost = jest.fn();
    for (const id of ids) {
      const delivered = () => ({
        promptTokens: 1,
        cachedTokens: 0,
        completionTokens: ++completionTokens,
        costNanos: TOKEN_NANOS,
      });
      client.track({ id, tenantId: f.tenantId, delivered, onLost });
    }
    await eventually(() => expect(watched().progressCalls.length).toBeGreaterThan(2));
    expect(watched().progressCalls[0]).toEqual(ids);
    for (const id of ids) client.untrack(id);
    const calls = watched().progressCalls.length;
    f.nowMs += DEFAULT_LEASE_MS * 2;
    // One call may have been under way: it is the last.
    await eventually(async () => expect(await f.sweep()).toHaveLength(2));
    expect(watched().progressCalls.length).toBeLessThanOrEqual(calls + 1);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('tells a request once that its hold is gone', async () => {
    const f = fixture();
    const [lost, kept] = [await f.hold(), await f.hold()];
    const onLost = jest.fn();
    for (const id of [lost, kept])
      client.track({ id, tenantId: f.tenantId, delivered: () => null, onLost: () => onLost(id) });
    await f.void(lost);
    await eventually(() => expect(onLost).toHaveBeenCalled());
    const calls = watched().progressCalls.length;
    await eventually(() => expect(watched().progressCalls.length).toBeGreaterThan(calls + 1));
    expect(onLost.mock.calls).toEqual([[lost]]);
    client.untrack(kept);
  });

  it('goes on telling after a call that failed', async () => {
    const f = fixture();
    const id = await f.hold();
    const onLost = jest.fn();
    watched().failNextProgress = true;
    client.track({ id, tenantId: f.tenantId, delivered: () => null, onLost });
    await eventually(() => expect(watched().progressCalls.length).toBeGreaterThan(2));
    expect(onLost).not.toHaveBeenCalled();
    client.untrack(id);
  });
});
