import { UnavailableError } from '@tollgate/contracts';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { AdmissionClient } from './admission-client';
import { DEFAULT_LEASE_MS, type AdmitRequest, type LookRequest, type Progress } from '../admission-store';
import { PostgresAdmissionStore } from '../postgres/postgres-admission-store';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';

const database = useTestDatabase();
const HEARTBEAT_INTERVAL_MS = 20;

/** The real store, which also records the calls it gets. */
class WatchedStore extends PostgresAdmissionStore {
  readonly admitCalls: number[] = [];
  readonly lookCalls: number[] = [];
  readonly progressCalls: string[][] = [];
  readonly voided: string[] = [];
  override answersWithinMs = { admit: Infinity, settle: Infinity };
  answerOfAdmit: Promise<void> | undefined;
  failNextProgress = false;
  progressTakesMs = 0;
  readonly progressStartsMs: number[] = [];
  private progressUnderWay = 0;
  mostProgressAtOnce = 0;

  override async admit(requests: readonly AdmitRequest[]) {
    this.admitCalls.push(requests.length);
    const results = await super.admit(requests);
    await this.answerOfAdmit;
    return results;
  }

  override async void(holds: readonly { id: string; tenantId: string }[]) {
    const results = await super.void(holds);
    for (const [index, { id }] of holds.entries()) if (results[index]) this.voided.push(id);
    return results;
  }

  override look(requests: readonly LookRequest[]) {
    this.lookCalls.push(requests.length);
    return super.look(requests);
  }

  override async progress(progress: readonly Progress[]) {
    this.progressCalls.push(progress.map(({ id }) => id));
    if (this.failNextProgress) {
      this.failNextProgress = false;
      throw new UnavailableError('the store is unavailable');
    }
    this.progressStartsMs.push(performance.now());
    this.mostProgressAtOnce = Math.max(this.mostProgressAtOnce, ++this.progressUnderWay);
    try {
      if (this.progressTakesMs > 0) await database.query('SELECT pg_sleep($1)', [this.progressTakesMs / 1_000]);
      return await super.progress(progress);
    } finally {
      this.progressUnderWay -= 1;
    }
  }
}

const fixture = useFixture(
  async ({ now }) => new WatchedStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS, ...(now ? { now } : {}) }),
);
let client: AdmissionClient;
beforeEach(async () => {
  client = new AdmissionClient(fixture().store, { heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS });
  await fixture().setBalance(10n ** 12n);
});
afterEach(() => client.close());

const watched = () => fixture().store as WatchedStore;

describe('the admission client', () => {
  it('sends all looks of one turn in one call, and gives each caller its own answer', async () => {
    const f = fixture();
    const none = { ...f.request().keyLimits, concurrency: 1 };
    await f.hold();
    const looks = Array.from({ length: 20 }, (_, i) => f.lookOf(f.request(i % 2 === 0 ? {} : { keyLimits: none })));
    const results = await Promise.all(looks.map((look) => client.look(look)));
    expect(watched().lookCalls).toEqual([20]);
    expect(results.map(({ kind }) => kind)).toEqual(looks.map((_, i) => (i % 2 === 0 ? 'clear' : 'refused')));
  });

  it('sends all admissions of one turn in one call, and gives each caller its own answer', async () => {
    const f = fixture();
    const requests = Array.from({ length: 50 }, (_, i) => f.request({ wantOutputTokens: i + 1 }));
    const results = await Promise.all(requests.map((request) => client.admit(request)));
    expect(watched().admitCalls).toEqual([50]);
    expect(results.map((result) => result.kind === 'held' && result.outputTokens)).toEqual(
      requests.map(({ wantOutputTokens }) => wantOutputTokens),
    );
  });

  it('carries a request from admission to release', async () => {
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

  it('keeps all tracked holds alive in one call, and records what was delivered', async () => {
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
    // One call may have been in progress: it is the last.
    await eventually(async () => expect(await f.sweep()).toHaveLength(2));
    expect(watched().progressCalls.length).toBeLessThanOrEqual(calls + 1);
    expect(onLost).not.toHaveBeenCalled();
  });

  it('reports a lost hold to its request once', async () => {
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

  it('reports every lost hold and continues, even if the callback of one request fails', async () => {
    const f = fixture();
    const ids = [await f.hold(), await f.hold(), await f.hold()];
    const [failing, lost, kept] = ids;
    const onLost = jest.fn((id: string) => {
      if (id === failing) throw new Error('cannot end');
    });
    for (const id of ids) client.track({ id, tenantId: f.tenantId, delivered: () => null, onLost: () => onLost(id) });
    await f.void(failing!);
    await f.void(lost!);
    await eventually(() => expect(onLost.mock.calls.flat().sort()).toEqual([failing, lost].sort()));
    const calls = watched().progressCalls.length;
    await eventually(() => expect(watched().progressCalls.length).toBeGreaterThan(calls + 1));
    expect(watched().progressCalls.at(-1)).toEqual([kept]);
    client.untrack(kept!);
  });

  it('keeps its interval from start to start when the store is slow, and never runs two calls at once', async () => {
    const [intervalMs, takesMs] = [300, 250];
    const slow = new AdmissionClient(fixture().store, { heartbeatIntervalMs: intervalMs });
    watched().progressTakesMs = takesMs;
    const id = await fixture().hold();
    slow.track({ id, tenantId: fixture().tenantId, delivered: () => null, onLost: jest.fn() });
    const starts = watched().progressStartsMs;
    await eventually(() => expect(starts.length).toBeGreaterThanOrEqual(5));
    slow.untrack(id);
    await slow.close();
    // The shortest interval, because the machine may be slow as well.
    const periods = starts.slice(1).map((start, index) => start - starts[index]!);
    expect(Math.min(...periods)).toBeLessThan(intervalMs + takesMs);
    expect(watched().mostProgressAtOnce).toBe(1);
  });

  it('prepares each report, and reports all requests even where the preparation fails', async () => {
    const f = fixture();
    const ids = [await f.hold(), await f.hold()];
    let completionTokens = 0;
    const delivered = () => ({ promptTokens: 1, cachedTokens: 0, completionTokens, costNanos: TOKEN_NANOS });
    const prepares = [
      () => Promise.reject(new Error('cannot be counted')),
      async () => {
        await new Promise(setImmediate);
        completionTokens = 7;
      },
    ];
    for (const [index, id] of ids.entries())
      client.track({ id, tenantId: f.tenantId, prepare: prepares[index]!, delivered, onLost: jest.fn() });
    await eventually(() => expect(watched().progressCalls.length).toBeGreaterThan(1));
    expect(watched().progressCalls[0]).toEqual(ids);
    for (const id of ids) client.untrack(id);
    f.nowMs += DEFAULT_LEASE_MS * 2;
    await eventually(async () =>
      expect(await f.sweep()).toMatchObject(ids.map(() => ({ completionTokens: 7, outcome: 'expired' }))),
    );
  });

  it('gives back a hold that was made after its request was refused', async () => {
    const f = fixture();
    watched().answersWithinMs = { admit: 1, settle: 1 };
    let answer = () => {};
    watched().answerOfAdmit = new Promise((resolve) => (answer = resolve));
    const impatient = new AdmissionClient(watched());
    const request = f.request();
    await expect(impatient.admit(request)).rejects.toThrow(UnavailableError);
    answer();
    await eventually(() => expect(watched().voided).toEqual([request.draft.id]));
    await impatient.close();
  });

  it('reads many large answers of a tenant in small calls, without a wait for others', async () => {
    const f = fixture();
    const [own, other] = [f.tenantId, 'another-tenant'];
    const asked: string[][] = [];
    let answer = () => {};
    jest.spyOn(watched(), 'answers').mockImplementation(async (requests) => {
      asked.push(requests.map(({ tenantId }) => tenantId));
      await new Promise<void>((resolve) => (answer = resolve));
      return requests.map(({ claimId }) => claimId);
    });
    const ask = (tenantId: string, claimId: string) =>
      client.answer({ tenantId, claimId, fingerprint: 'print', answerChars: 1_400_000 });
    const many = Array.from({ length: 20 }, (_, n) => ask(own, String(n)));
    await eventually(() => expect(asked).toHaveLength(1));
    // Neither another tenant's answer nor the state of any claim waits for all of them.
    const foreign = ask(other, 'foreign');
    expect(await client.recall({ tenantId: own, claimId: 'free' })).toEqual({ kind: 'free' });
    answer();
    await eventually(() => expect(asked).toHaveLength(2));
    answer();
    expect(await foreign).toBe('foreign');
    expect(asked.slice(0, 2)).toEqual([
      [own, own],
      [own, other],
    ]);
    const ends = Promise.all(many);
    for (let n = 3; n <= 11; n++) {
      await eventually(() => expect(asked).toHaveLength(n));
      answer();
    }
    expect(await ends).toEqual(many.map((_, n) => String(n)));
  });

  it('goes on with heartbeats after a failed call', async () => {
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
