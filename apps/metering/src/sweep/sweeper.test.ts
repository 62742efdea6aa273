import { PostgresAdmissionStore, type AdmitRequest } from '@tollgate/admission';
import { newId, type UsageDraft, type UsageEvent } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { TENANT, usageEvent } from '../sample-events.fixture';
import { SWEEP_LIMIT, Sweeper } from './sweeper';

// Real: the admission store and the messages, both on PostgreSQL. The test controls the store's clock.
let nowMs = Date.now();
let store: PostgresAdmissionStore;
let messages: PostgresMessages;
let published: UsageEvent[] = [];

afterAll(async () => {
  await messages.stopConsuming();
  await messages.close();
  await store.close();
});
const database = useTestDatabase();

beforeAll(async () => {
  store = new PostgresAdmissionStore({ url: database.url, now: () => nowMs, callTimeoutMs: PATIENT_CALL_MS });
  messages = new PostgresMessages({ url: database.url, applicationName: 'test-messages' });
  messages.consume('usage-events', 'metering', async (batch) => {
    published.push(...batch);
  });
  await store.start();
  await messages.start();
  await update({ balanceNanos: 10n ** 15n });
});
beforeEach(() => {
  published = [];
});

let version = 0n;
async function update({ balanceNanos = 10n ** 15n, releases = [] as string[] }): Promise<void> {
  await store.applyBalanceUpdates([{ tenantId: TENANT, version: ++version, balanceNanos, releases, suspended: false }]);
}

async function admit(count: number): Promise<UsageDraft[]> {
  const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 100_000 };
  const drafts = Array.from({ length: count }, () => {
    const { id, tenantId, keyId, model, kind, stream, price, startedAt } = usageEvent({ id: newId('req') });
    return { id, tenantId, keyId, model, kind, stream, price, startedAt };
  });
  const requests = drafts.map((draft): AdmitRequest => ({
    draft,
    tenantLimits: limits,
    keyLimits: limits,
    keyBudgetNanos: null,
    tenantBudgetNanos: null,
    promptTokens: 100,
    promptFemtos: 100n * 150_000_000n,
    outputFemtosPerToken: 600_000_000n,
    wantOutputTokens: 100,
    minOutputTokens: 1,
    boundIsExact: true,
  }));
  expect((await store.admit(requests)).every((result) => 'kind' in result && result.kind === 'held')).toBe(true);
  return drafts;
}

async function settle(count: number): Promise<UsageEvent[]> {
  const events = (await admit(count)).map((draft) => usageEvent(draft));
  await store.settle(events.map((event) => ({ event })));
  return events;
}

const ids = (events: readonly { id: string }[]) => events.map(({ id }) => id).sort();
const sweeper = (confirmAfterMs = 5_000) => new Sweeper(store, messages, { sweepIntervalMs: 10, confirmAfterMs });

/** Looks once a second, and returns the times at which it found something. */
async function sentAtMs(sweeping: Sweeper, seconds: number): Promise<number[]> {
  const sent: number[] = [];
  const startMs = nowMs;
  for (let second = 1; second <= seconds; second++) {
    nowMs += 1_000;
    if ((await sweeping.sweep(nowMs)) > 0) sent.push(nowMs - startMs);
  }
  return sent;
}

describe('the sweeper', () => {
  it('publishes settled usage that was not confirmed in time, unchanged, and nothing else', async () => {
    const [lost, confirmed] = await settle(2);
    nowMs += 4_999;
    const [young] = await settle(1);
    expect(await sweeper().sweep()).toBe(0);
    nowMs += 1;
    await update({ releases: [confirmed!.id] });
    expect(await sweeper().sweep()).toBe(1);
    await eventually(() => expect(published).toEqual([lost]));
    expect(await sweeper().sweep()).toBe(0);
    await update({ releases: [lost!.id, young!.id] });
  });

  it('publishes the recorded progress of a request whose gateway died', async () => {
    const [draft] = await admit(1);
    const delivered = { promptTokens: 100, cachedTokens: 0, completionTokens: 3, costNanos: 100n * 150n + 3n * 600n };
    expect(await store.progress([{ id: draft!.id, tenantId: TENANT, delivered }])).toEqual([true]);
    nowMs += 60_000;
    expect(await sweeper().sweep()).toBe(1);
    await eventually(() =>
      expect(published).toMatchObject([{ ...draft, outcome: 'expired', completionTokens: 3, costNanos: '16800' }]),
    );
    await update({ releases: [draft!.id] });
  });

  it('continues while there is more than one call returns, each event once, even beside another sweeper', async () => {
    const events = await settle(SWEEP_LIMIT * 2 + 7);
    nowMs += 5_000;
    const counts = await Promise.all([sweeper().sweep(), sweeper().sweep()]);
    expect(counts[0] + counts[1]).toBe(events.length);
    await eventually(() => expect(ids(published)).toEqual(ids(events)));
    await update({ releases: ids(events) });
  });

  it('redelivers a backlog more and more rarely without confirmations, and at once after they arrive', async () => {
    const events = await settle(SWEEP_LIMIT);
    const one = sweeper();
    expect(await sentAtMs(one, 80)).toEqual([5_000, 15_000, 35_000, 75_000]);
    await update({ releases: ids(events) });
    nowMs += 161_000;
    expect(await one.sweep(nowMs)).toBe(0);
    const [next] = await settle(1);
    nowMs += 5_000;
    expect(await one.sweep(nowMs)).toBe(1);
    await update({ releases: [next!.id] });
  });

  it('publishes the others if a message can never be published', async () => {
    const [before, unstorable, after] = (await admit(3)).map((draft) => usageEvent(draft));
    // The admission store keeps it as a text, and the message store has no place for a NUL.
    unstorable!.backend = 'a\0b';
    await store.settle([before, unstorable, after].map((event) => ({ event: event! })));
    nowMs += 5_000;
    expect(await sweeper().sweep()).toBe(2);
    await eventually(() => expect(published).toEqual(expect.arrayContaining([before, after])));
    await update({ releases: ids([before!, unstorable!, after!]) });
  });

  it('never delays a few lost events, however often they must be redelivered', async () => {
    const [event] = await settle(1);
    expect(await sentAtMs(sweeper(), 20)).toEqual([5_000, 10_000, 15_000, 20_000]);
    await update({ releases: [event!.id] });
  });

  it('continues after errors, and stops on demand', async () => {
    const one = sweeper(0);
    await database.query('ALTER FUNCTION admission.sweep RENAME TO swept');
    one.onApplicationBootstrap();
    const [event] = await settle(1);
    await database.query('ALTER FUNCTION admission.swept RENAME TO sweep');
    await eventually(() => expect(published).toContainEqual(event));
    await one.beforeApplicationShutdown();
    await update({ releases: [event!.id] });
  });
});
