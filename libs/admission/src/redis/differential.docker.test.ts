import { newId } from '@tollgate/contracts';
import { assertRuns, PATIENT_CALL_MS, useRedis, useTestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import type { AdmissionStore, AdmitRequest } from '../admission-store';
import { PostgresAdmissionStore } from '../postgres/postgres-admission-store';
import { Fixture, START_MS } from '../suite/fixture.suite';
import { RedisAdmissionStore } from './redis-admission-store';

const LEAST_RUNS = 20;
const MOST_RUNS = 100_000;
const TIME_BOX_MS = 10_000;

const database = useTestDatabase();
const redis = useRedis();

/** Small and large alike: what a store of doubles would round, and what the clamps divide. */
const nanos = fc.oneof(fc.bigInt(0n, 10_000n), fc.bigInt(0n, 10n ** 13n), fc.bigInt(0n, 4n * 10n ** 18n));
const femtos = fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n ** 9n), fc.bigInt(0n, 10n ** 15n));
const tokens = fc.oneof(fc.nat(50), fc.nat(100_000), fc.nat(1_000_000_000));
const limits = fc.record({
  requestsPerMinute: fc.constantFrom(3, 7, 997, 1_000_000),
  tokensPerMinute: fc.constantFrom(97, 100_003, 10 ** 9, 10 ** 12),
  concurrency: fc.constantFrom(2, 100),
});
const budget = fc.option(nanos, { freq: 2 });
const shape = fc
  .record({
    keyLimits: limits,
    tenantLimits: limits,
    keyBudgetNanos: budget,
    tenantBudgetNanos: budget,
    promptTokens: tokens,
    promptFemtos: fc.oneof(fc.constant(0n), fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 10n ** 24n)),
    outputFemtosPerToken: femtos,
    boundIsExact: fc.constantFrom(true, true, true, false),
    wantOutputTokens: tokens,
    least: tokens,
  })
  .map(({ least, ...rest }) => {
    const want = rest.wantOutputTokens;
    return { ...rest, minOutputTokens: want === 0 ? 0 : Math.max(1, Math.min(want, least)) };
  });

const pick = fc.nat(30);
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 5 });
const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('admit' as const), requests: some(fc.record({ key: fc.nat(1), shape })) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      holds: some(fc.record({ pick, want: nanos, min: nanos })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('progress' as const),
      holds: some(fc.record({ pick, cost: fc.option(nanos), tokens })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      holds: some(fc.record({ pick, part: fc.nat(1_001), tokens })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('void' as const), holds: some(fc.record({ pick })) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('news' as const),
      balance: nanos,
      below: fc.boolean(),
      version: fc.nat(60),
      releases: some(pick),
      budgets: fc.array(
        fc.record({
          key: fc.option(fc.nat(1)),
          version: fc.nat(20).map((version) => BigInt(version + 1)),
          nanos: fc.oneof(nanos, fc.constantFrom('none' as const, 'default' as const)),
        }),
        { maxLength: 3 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('sweep' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.oneof(fc.nat(40), fc.nat(15_000), fc.constantFrom(2_678_400_000, -2_678_400_000, -15_000, -100_000)),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** One tenant with two keys, and every hold that was ever asked for. */
class Run {
  private readonly tenantId = newId('ten');
  private readonly keyIds = [newId('key'), newId('key')];
  private readonly ids: string[] = [];
  private readonly holdNanos = new Map<string, bigint>();

  constructor(
    private readonly fixture: Fixture,
    private readonly stores: readonly AdmissionStore[],
  ) {}

  async apply(operation: Operation): Promise<void> {
    const { tenantId, fixture } = this;
    switch (operation.kind) {
      case 'wait':
        fixture.nowMs += operation.ms;
        return;
      case 'admit': {
        const requests = operation.requests.map(({ key, shape }): AdmitRequest => {
          const id = newId('req');
          this.ids.push(id);
          return fixture.request({ id, tenantId, keyId: this.keyIds[key]!, ...shape });
        });
        for (const [i, result] of (await this.onBoth((store) => store.admit(requests))).entries()) {
          if (!(result instanceof Error) && result.kind === 'held')
            this.holdNanos.set(requests[i]!.draft.id, result.holdNanos);
        }
        return;
      }
      case 'extend': {
        const wanted = this.holds(operation.holds).map(({ id, want, min }) => ({
          id,
          tenantId,
          wantNanos: want,
          minNanos: min,
        }));
        for (const [i, result] of (await this.onBoth((store) => store.extend(wanted))).entries())
          if (!(result instanceof Error) && result.kind === 'extended')
            this.holdNanos.set(wanted[i]!.id, result.holdNanos);
        return;
      }
      case 'progress': {
        const signs = this.holds(operation.holds).map(({ id, cost, tokens }) => ({
          id,
          tenantId,
          delivered:
            cost === null ? null : { promptTokens: 5, cachedTokens: 2, completionTokens: tokens, costNanos: cost },
        }));
        await this.onBoth((store) => store.progress(signs));
        return;
      }
      case 'settle': {
        // From nothing to a little more than the hold.
        const events = this.holds(operation.holds).map(({ id, part, tokens }) => ({
          event: fixture.event(id, ((this.holdNanos.get(id) ?? 0n) * BigInt(part)) / 1_000n, {
            tenantId,
            completionTokens: tokens,
          }),
        }));
        await this.onBoth((store) => store.settle(events));
        return;
      }
      case 'void': {
        const holds = this.holds(operation.holds).map(({ id }) => ({ id, tenantId }));
        await this.onBoth((store) => store.void(holds));
        return;
      }
      case 'news': {
        const releases = this.holds(operation.releases.map((pick) => ({ pick }))).map(({ id }) => id);
        const balanceNanos = operation.below ? -operation.balance : operation.balance;
        const news = {
          tenantId,
          version: BigInt(operation.version),
          balanceNanos,
          releases,
          suspended: operation.version % 11 === 10,
          budgets: operation.budgets.map(({ key, ...rest }) => ({
            keyId: key === null ? null : this.keyIds[key]!,
            ...rest,
          })),
        };
        await this.onBoth((store) => store.applyNews([news]));
        return;
      }
      case 'sweep':
        await this.onBoth(async (store) =>
          (await store.sweep({ limit: 10_000, confirmAfterMs: 20_000 }))
            .filter((event) => event.tenantId === tenantId)
            .sort((a, b) => (a.id < b.id ? -1 : 1)),
        );
    }
  }

  async compareBooks(): Promise<void> {
    await this.onBoth(async (store) => {
      const [snapshot] = await store.snapshot({ tenantId: this.tenantId, limit: 1 });
      return snapshot;
    });
  }

  /** The answer of both, which must be one: every hold, refusal, wait, remainder and sum, to the nano and the millisecond. */
  private async onBoth<T>(ask: (store: AdmissionStore) => Promise<T>): Promise<T> {
    const [postgres, redis] = (await Promise.all(this.stores.map(ask))) as [T, T];
    expect(comparable(redis)).toEqual(comparable(postgres));
    return redis;
  }

  /** Each id once. */
  private holds<T extends { pick: number }>(picks: T[]): (T & { id: string })[] {
    const holds = new Map<string, T & { id: string }>();
    for (const one of picks) {
      const id = this.ids.at(-1 - (one.pick % Math.max(1, this.ids.length)));
      if (id) holds.set(id, { ...one, id });
    }
    return [...holds.values()];
  }
}

/** The messages of their errors may differ, and only one of them can be emptied and so has lives. */
function comparable(answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer;
  return answer.map((one: unknown) => {
    if (one instanceof RangeError) return 'mistake';
    return typeof one === 'object' ? { ...one, life: undefined } : one;
  });
}

describe('Postgres and Redis', () => {
  it('give the same answers, whatever comes in whatever order, with amounts of every size', async () => {
    let nowMs = START_MS;
    const now = () => nowMs;
    const stores = [
      new PostgresAdmissionStore({ url: database.url, now, callTimeoutMs: PATIENT_CALL_MS }),
      new RedisAdmissionStore({ url: redis.url, now, callTimeoutMs: PATIENT_CALL_MS }),
    ];
    await Promise.all(stores.map((store) => store.start()));
    const fixture = new Fixture(() => Promise.resolve(stores[0]!));
    Object.defineProperty(fixture, 'nowMs', { get: now, set: (ms: number) => (nowMs = ms) });
    try {
      await assertRuns(
        fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 50, size: 'max' }), async (operations) => {
          nowMs = START_MS;
          const run = new Run(fixture, stores);
          await run.apply({ kind: 'news', balance: 10n ** 18n, below: false, version: 1, releases: [], budgets: [] });
          for (const one of operations) {
            await run.apply(one);
            await run.compareBooks();
          }
        }),
        { leastRuns: LEAST_RUNS, mostRuns: MOST_RUNS, timeBoxMs: TIME_BOX_MS },
      );
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
  });
});
