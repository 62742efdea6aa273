import { newId } from '@tollgate/contracts';
import { assertRuns, PATIENT_CALL_MS, useRedis, useTestDatabase } from '@tollgate/testing';
import fc from 'fast-check';
import type { AdmissionStore, AdmitRequest } from '../admission-store';
import { PostgresAdmissionStore } from '../postgres/postgres-admission-store';
import { Fixture, START_MS } from '../suite/store.fixture';
import { CLAIMS, operation, type Operation } from './differential-operations.fixture';
import { RedisAdmissionStore } from './redis-admission-store';

const LEAST_RUNS = 20;
const MOST_RUNS = 100_000;
const TIME_BOX_MS = 10_000;
/** Small, so that claims are forgotten and answers dropped. Longer than any wait, which goes back and forth. */
const CLAIM_LIMITS = { keepMs: 10 * 365 * 86_400_000, maxClaims: 4, maxAnswerChars: 200 };

const database = useTestDatabase();
const redis = useRedis();

/** One tenant with two keys, and every hold that was ever requested. */
class Run {
  private readonly tenantId = newId('ten');
  private readonly keyIds = [newId('key'), newId('key')];
  private readonly ids: string[] = [];
  private readonly keyOf = new Map<string, string>();
  private readonly claimOf = new Map<string, string>();
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
        const requests = operation.requests.map(({ key, shape, claim }): AdmitRequest => {
          const id = newId('req');
          const keyId = this.keyIds[key]!;
          this.ids.push(id);
          this.keyOf.set(id, keyId);
          const claimId = claim === null ? null : `claim-${claim}`;
          if (claimId !== null) this.claimOf.set(id, claimId);
          const claimed = claimId !== null && { claim: { id: claimId, fingerprint: `print of ${id}` } };
          return fixture.request({ id, tenantId, keyId, ...shape, ...claimed });
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
        const heartbeats = this.holds(operation.holds).map(({ id, cost, tokens }) => ({
          id,
          tenantId,
          delivered:
            cost === null ? null : { promptTokens: 5, cachedTokens: 2, completionTokens: tokens, costNanos: cost },
        }));
        await this.onBoth((store) => store.progress(heartbeats));
        return;
      }
      case 'settle': {
        // From nothing to slightly more than the hold.
        const events = this.holds(operation.holds).map(({ id, part, tokens, answer }) => ({
          ...(this.claimOf.has(id) && {
            answer: { claimId: this.claimOf.get(id)!, sealed: answer === null ? null : 'x'.repeat(answer) },
          }),
          event: fixture.event(id, ((this.holdNanos.get(id) ?? 0n) * BigInt(part)) / 1_000n, {
            tenantId,
            keyId: this.keyOf.get(id)!,
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
      case 'updates': {
        const releases = this.holds(operation.releases.map((pick) => ({ pick }))).map(({ id }) => id);
        const balanceNanos = operation.below ? -operation.balance : operation.balance;
        const update = {
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
        await this.onBoth((store) => store.applyBalanceUpdates([update]));
        return;
      }
      case 'withdraw': {
        const { version, nanos } = operation;
        await this.onBoth((store) => store.withdraw({ tenantId, version, nanos }));
        return;
      }
      case 'repair': {
        const { balance, version, spent, isThisMonth, budgets, releases } = operation;
        const month = new Date(fixture.nowMs - (isThisMonth ? 0 : 40 * 86_400_000)).toISOString().slice(0, 7);
        const repair = {
          tenantId,
          version: BigInt(version),
          balanceNanos: balance,
          suspended: version % 11 === 10,
          releases: this.holds(releases.map((pick) => ({ pick }))).map(({ id }) => id),
          spent:
            spent === null
              ? []
              : [
                  {
                    month,
                    tenantNanos: spent[0],
                    keys: this.keyIds.map((keyId, i) => ({ keyId, nanos: spent[i + 1]! })),
                  },
                ],
          budgets: budgets.map(({ key, ...rest }) => ({ keyId: key === null ? null : this.keyIds[key]!, ...rest })),
        };
        await this.onBoth((store) => store.repair(repair));
        await this.onBoth(async (store) => {
          const [after] = await store.snapshot({ tenantId, limit: 1 });
          expect(after).toMatchObject({
            version: BigInt(version),
            balanceNanos: balance,
            withdrawnNanos: 0n,
            settledNanos: after!.holdRowsSettledNanos,
            pendingNanos: after!.holdRowsPendingNanos,
            inFlight: BigInt(after!.pendingHolds),
          });
          return after;
        });
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
    const claims = Array.from({ length: CLAIMS }, (_, n) => ({ tenantId: this.tenantId, claimId: `claim-${n}` }));
    const recalled = await this.onBoth((store) => store.recall(claims));
    const asked = recalled.map((state, n) => {
      const fingerprint = 'fingerprint' in state ? state.fingerprint : 'of no body';
      return { ...claims[n]!, fingerprint, answerChars: 0 };
    });
    await this.onBoth((store) => store.answers(asked));
    await this.onBoth(async (store) => {
      const [snapshot] = await store.snapshot({ tenantId: this.tenantId, limit: 1 });
      return snapshot;
    });
  }

  /**
   * The result of both stores, which must be equal: every hold, refusal, wait, remainder and sum, to the nano and the
   * millisecond.
   */
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

/** Error messages may differ, and only the Redis store can be emptied and so has epochs. */
function comparable(answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer;
  return answer.map((one: unknown) => {
    if (one instanceof RangeError) return 'mistake';
    return typeof one === 'object' ? { ...one, storeEpoch: undefined } : one;
  });
}

describe('Postgres and Redis', () => {
  it('give equal results for random operations in random order, with amounts of every size', async () => {
    let nowMs = START_MS;
    const now = () => nowMs;
    const stores = [
      new PostgresAdmissionStore({ url: database.url, now, callTimeoutMs: PATIENT_CALL_MS, claims: CLAIM_LIMITS }),
      new RedisAdmissionStore({ url: redis.url, now, callTimeoutMs: PATIENT_CALL_MS, claims: CLAIM_LIMITS }),
    ];
    await Promise.all(stores.map((store) => store.start()));
    const fixture = new Fixture(() => Promise.resolve(stores[0]!));
    Object.defineProperty(fixture, 'nowMs', { get: now, set: (ms: number) => (nowMs = ms) });
    try {
      await assertRuns(
        fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 50, size: 'max' }), async (operations) => {
          nowMs = START_MS;
          const run = new Run(fixture, stores);
          await run.apply({
            kind: 'updates',
            balance: 10n ** 18n,
            below: false,
            version: 1,
            releases: [],
            budgets: [],
          });
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
