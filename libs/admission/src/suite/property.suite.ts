import { newId, type UsageEvent } from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import type { AdmissionStore, AdmitResult, ExpectedEnd, LookResult, ParsedBalanceUpdate } from '../admission-store';
import { Fixture, TOKEN_NANOS, type OpenStore } from './store.fixture';
import { Model } from './model.fixture';
import { operation, type Operation } from './operations.fixture';

const LEAST_RUNS = 20;
const MOST_RUNS = 100_000;
const TIME_BOX_MS = 8_000;

/** One run: the store beside the model, and a ledger that sends its balance updates in any order, with repeats. */
class Run {
  private readonly model = new Model();
  private readonly tenants = [newId('ten'), newId('ten')];
  private readonly keys = [newId('key'), newId('key')];
  private readonly ids: string[] = [];
  private readonly tenantOf = new Map<string, string>();
  private readonly ledger = this.tenants.map(() => ({ version: 0n, balanceNanos: 0n }));
  private readonly unposted = new Map<string, UsageEvent>();
  private readonly posted = new Set<string>();
  private readonly updates: ParsedBalanceUpdate[] = [];
  private budgetVersion = 0n;

  constructor(
    private readonly fixture: Fixture,
    private readonly store: AdmissionStore,
  ) {
    this.model.nowMs = fixture.nowMs;
  }

  async apply(operation: Operation): Promise<void> {
    const { model, store, fixture } = this;
    switch (operation.kind) {
      case 'wait':
        fixture.nowMs += operation.ms;
        model.nowMs = fixture.nowMs;
        return;
      case 'admit': {
        const requests = operation.requests.map(({ tenant, key, repeat, shape }) => {
          const again = repeat === null ? undefined : this.id(repeat);
          const id = again ?? newId('req');
          const tenantId = this.tenantOf.get(id) ?? this.tenants[tenant]!;
          if (!again) this.ids.push(id);
          this.tenantOf.set(id, tenantId);
          const request = fixture.request({ id, tenantId, keyId: this.keys[key]!, ...shape });
          return { ...request, draft: { ...request.draft, model: `m${request.promptTokens % 3}` } };
        });
        const results = await store.admit(requests);
        expect(results.map(withoutLife)).toEqual(requests.map((request) => model.admit(request)));
        return;
      }
      case 'look': {
        // A look must answer as the admission of the smallest request, which the model then admits.
        const least = operation.requests.map(({ tenant, key, shape }, i) => {
          const ids = { tenantId: this.tenants[tenant]!, keyId: this.keys[key]! };
          return { ...fixture.request({ ...ids, ...shape }), isPaid: i % 3 !== 0 };
        });
        const looks = least.map(({ isPaid, ...request }) => fixture.lookOf(request, isPaid));
        const answers = await store.look(looks);
        expect(await store.look(looks)).toEqual(answers);
        for (const [i, { isPaid, ...request }] of least.entries()) {
          // What an earlier admission of this call took was not yet taken when all looks were answered.
          const [answer] = i === 0 ? answers : await store.look([looks[i]!]);
          this.ids.push(request.draft.id);
          this.tenantOf.set(request.draft.id, request.draft.tenantId);
          const asked = fixture.least(request, isPaid);
          const [admitted] = await store.admit([asked]);
          expect(withoutLife(admitted!)).toEqual(model.admit(asked));
          expect(withoutLimits(answer!)).toEqual(withoutLimits(admitted!));
        }
        return;
      }
      case 'extend': {
        const requests = this.holds(operation.holds).map(({ id, tenantId, want, min }) => {
          return { id, tenantId, wantNanos: BigInt(want) * TOKEN_NANOS, minNanos: BigInt(min) * TOKEN_NANOS };
        });
        expect(await store.extend(requests)).toEqual(requests.map((request) => model.extend(request)));
        return;
      }
      case 'progress': {
        const heartbeats = this.holds(operation.holds).map(({ id, tenantId, completionTokens }) => {
          const costNanos = BigInt(completionTokens ?? 0) * TOKEN_NANOS;
          return {
            id,
            tenantId,
            delivered:
              completionTokens === null ? null : { promptTokens: 2, cachedTokens: 1, completionTokens, costNanos },
          };
        });
        expect(await store.progress(heartbeats)).toEqual(heartbeats.map((heartbeat) => model.progress(heartbeat)));
        return;
      }
      case 'settle': {
        const events = this.holds(operation.holds).map(({ id, tenantId, tokens }) => {
          return fixture.event(id, BigInt(tokens) * TOKEN_NANOS, { tenantId, promptTokens: 3 });
        });
        const results = (await store.settle(events.map((event) => ({ event })))).map(mistakes);
        expect(results).toEqual(model.settle(events));
        for (const result of results) {
          if (result !== 'mistake' && result.kind === 'settled' && !result.repeated) this.owe(result.event);
        }
        return;
      }
      case 'void': {
        const holds = this.holds(operation.holds);
        expect(await store.void(holds)).toEqual(model.void(holds));
        return;
      }
      case 'sweep': {
        const mine = (events: UsageEvent[]) =>
          events.filter((event) => this.tenantOf.has(event.id)).sort((a, b) => (a.id < b.id ? -1 : 1));
        const handedOut = mine(await store.sweep({ limit: 10_000, confirmAfterMs: 20_000 }));
        expect(handedOut).toEqual(mine(model.sweep(20_000)));
        for (const event of handedOut) if (event.outcome === 'expired') this.owe(event);
        return;
      }
      case 'topUp':
        this.ledger[operation.tenant]!.balanceNanos += BigInt(operation.tokens) * TOKEN_NANOS;
        this.write(operation.tenant, []);
        return;
      case 'post': {
        const due = [...this.unposted.values()]
          .filter((event) => event.tenantId === this.tenants[operation.tenant])
          .slice(0, operation.count);
        for (const event of due) {
          this.ledger[operation.tenant]!.balanceNanos -= BigInt(event.costNanos);
          this.unposted.delete(event.id);
          this.posted.add(event.id);
        }
        this.write(
          operation.tenant,
          due.map((event) => event.id),
        );
        return;
      }
      case 'budget': {
        const keyId = operation.key === null ? null : this.keys[operation.key]!;
        this.budgetVersion += 1n;
        const budget = { keyId, version: this.budgetVersion, nanos: operation.nanos };
        this.updates.push({ ...this.books(operation.tenant), releases: [], budgets: [budget] });
        return;
      }
      case 'deliver': {
        const batch = operation.picks.flatMap((pick) => this.updates.at(-1 - (pick % 5)) ?? []);
        await store.applyBalanceUpdates(batch);
        for (const one of batch) model.applyBalanceUpdates(one);
      }
    }
  }

  /** The invariants after every operation. */
  async check(): Promise<void> {
    const ends = await this.store.expectedEnds(this.tenants);
    expect(ends.map(sorted)).toEqual(this.tenants.map((tenantId) => sorted(this.model.expectedEnds(tenantId))));
    const snapshots = await Promise.all(this.tenants.map((tenantId) => this.store.snapshot({ tenantId, limit: 1 })));
    for (const snapshot of snapshots.flat()) {
      const { balanceNanos, settledNanos, pendingNanos, pendingHolds, settledHolds } = snapshot;
      expect(snapshot.holdRowsPendingNanos).toBe(pendingNanos);
      expect(snapshot.holdRowsSettledNanos).toBe(settledNanos);
      expect(balanceNanos - settledNanos - pendingNanos).toBeGreaterThanOrEqual(0n);
      expect({ balanceNanos, settledNanos, pendingNanos, pendingHolds, settledHolds }).toEqual(
        this.model.sums(snapshot.tenantId),
      );
    }
  }

  /** An ended hold is owed once: a second end of it would be charged twice. */
  private owe(event: UsageEvent): void {
    if (this.posted.has(event.id)) return;
    expect(this.unposted.get(event.id) ?? event).toEqual(event);
    this.unposted.set(event.id, event);
  }

  private write(tenant: number, releases: string[]): void {
    this.ledger[tenant]!.version += 1n;
    this.updates.push({ ...this.books(tenant), releases });
  }

  private books(tenant: number): Omit<ParsedBalanceUpdate, 'releases'> {
    const ledger = this.ledger[tenant]!;
    return { tenantId: this.tenants[tenant]!, ...ledger, suspended: ledger.version % 13n === 0n };
  }

  /** Usually an existing hold, sometimes any earlier id. */
  private id(pick: number): string | undefined {
    const among = pick % 4 === 0 ? this.ids : [...this.model.holds.keys()];
    return among[among.length - 1 - (pick % Math.max(1, among.length))];
  }

  /** Each id once: other tests cover an id twice in one call. */
  private holds<T extends { pick: number }>(picks: T[]): (T & { id: string; tenantId: string })[] {
    const holds = new Map<string, T & { id: string; tenantId: string }>();
    for (const one of picks) {
      const id = this.id(one.pick);
      if (id) holds.set(id, { ...one, id, tenantId: this.tenantOf.get(id)! });
    }
    return [...holds.values()];
  }
}

const mistakes = <T>(result: T | RangeError) => (result instanceof RangeError ? ('mistake' as const) : result);
const sorted = (ends: ExpectedEnd[] | Error) =>
  ends instanceof Error ? ends : ends.sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
/** The model is never emptied. */
const withoutLife = (result: AdmitResult | RangeError) =>
  result instanceof RangeError ? ('mistake' as const) : { ...result, storeEpoch: undefined };

/** A look takes nothing, so its limits differ from an admission's. A refusal's limits are equal. */
const withoutLimits = (result: LookResult | AdmitResult | Error) =>
  result instanceof Error ? 'mistake' : result.kind === 'refused' ? result : 'clear';

/**
 * Random operations in random order, beside the model: all results are equal, no money is overdrawn, and every hold
 * ends once.
 */
export function propertySuite(open: OpenStore): void {
  it('returns what the model returns, for random operations in random order', async () => {
    const fixture = new Fixture(open);
    await fixture.setUp();
    try {
      await assertRuns(
        fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 60, size: 'max' }), async (operations) => {
          const run = new Run(fixture, fixture.store);
          await run.apply({ kind: 'topUp', tenant: 0, tokens: 500 });
          await run.apply({ kind: 'deliver', picks: [0] });
          for (const one of operations) {
            await run.apply(one);
            await run.check();
          }
        }),
        { leastRuns: LEAST_RUNS, mostRuns: MOST_RUNS, timeBoxMs: TIME_BOX_MS },
      );
    } finally {
      await fixture.tearDown();
    }
  });
}
