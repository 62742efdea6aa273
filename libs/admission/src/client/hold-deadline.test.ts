import { AdmissionClient } from './admission-client';
import type { AdmissionStore, AdmitRequest, Progress } from '../admission-store';
import { HoldDeadline } from './hold-deadline';

const LEASE_MS = 10_000;
const HEARTBEAT_MS = 5;
/** A lease less its margin. */
const LIVES_MS = 9_000;

let nowMs = 0;
beforeEach(() => {
  nowMs = 1_000;
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => jest.restoreAllMocks());

/** The time until the deadline by the mocked clock, found by trying. */
function livesForMs(deadline: HoldDeadline): number {
  const from = nowMs;
  while (!deadline.passed) nowMs += 500;
  const lives = nowMs - from;
  nowMs = from;
  return lives;
}

/** A store that answers as the test says. */
class FakeStore {
  leaseMs = LEASE_MS;
  answersWithinMs = { admit: Infinity, settle: Infinity };
  progress: (heartbeats: readonly Progress[]) => Promise<(boolean | Error)[]> = async (heartbeats) =>
    heartbeats.map(() => true);
  admit = async (requests: readonly AdmitRequest[]) => {
    // On its way, and at the disk.
    nowMs += 2_000;
    return requests.map(() => ({ kind: 'held' as const, holdNanos: 1n, outputTokens: 1, limits: {} }));
  };
}

async function admitted(store: FakeStore) {
  const client = new AdmissionClient(store as unknown as AdmissionStore, { heartbeatIntervalMs: HEARTBEAT_MS });
  const result = await client.admit({ draft: { id: 'a' } } as AdmitRequest);
  if (result.kind !== 'held') throw new Error(result.reason);
  return { client, deadline: result.deadline };
}

/** Resolves after this number of heartbeats. */
const told = (calls: { count: number }, times: number) =>
  new Promise<void>((resolve) => {
    const look = () => (calls.count >= times ? resolve() : void setTimeout(look, 1));
    look();
  });

describe('the deadline of a hold', () => {
  it('is a lease less a margin after the admission was sent, however long the answer took', async () => {
    const { client, deadline } = await admitted(new FakeStore());
    expect(livesForMs(deadline)).toBe(LIVES_MS - 2_000);
    await client.close();
  });

  it.each<[string, () => Promise<(boolean | Error)[]>, number]>([
    ['that is acknowledged moves it, counted from the send', () => ((nowMs += 700), Promise.resolve([true])), 8_500],
    ['that fails does not move it', () => Promise.reject(new Error('away')), LIVES_MS - 2_000],
    ['that fails for this tenant alone does not move it', () => Promise.resolve([new Error('away')]), LIVES_MS - 2_000],
    ['for a hold that is gone does not move it', () => Promise.resolve([false]), LIVES_MS - 2_000],
  ])('a heartbeat %s', async (_, answer, expectedMs) => {
    const store = new FakeStore();
    const { client, deadline } = await admitted(store);
    const calls = { count: 0 };
    store.progress = async () => {
      calls.count += 1;
      // The later heartbeats change nothing.
      store.progress = async () => ((calls.count += 1), [new Error('away')]);
      return answer();
    };
    client.track({ id: 'a', tenantId: 't', deadline, delivered: () => null, onLost: () => (calls.count += 9) });
    await told(calls, 2);
    client.untrack('a');
    expect(livesForMs(deadline)).toBe(expectedMs);
    await client.close();
  });

  it('never moves back', () => {
    const deadline = new HoldDeadline(5_000, LEASE_MS);
    deadline.renew(1_000);
    nowMs = 5_000;
    expect(livesForMs(deadline)).toBe(LIVES_MS);
  });
});
