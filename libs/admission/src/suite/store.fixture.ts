import { FEMTOS_PER_NANO, newId, type Outcome, type PriceStamp, type UsageEvent } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import type {
  AdmissionStore,
  AdmitRequest,
  AdmitResult,
  Budget,
  ClaimLimits,
  Limits,
  LookRequest,
  LookResult,
  Progress,
  SettleResult,
  Snapshot,
} from '../admission-store';

/**
 * Opens another store on the same data, as another process would. `now`: epoch milliseconds instead of the store's own
 * clock.
 */
export type OpenStore = (options: { now?: () => number; claims?: Partial<ClaimLimits> }) => Promise<AdmissionStore>;

export const START_MS = Date.UTC(2026, 4, 15, 12);
export const WIDE: Limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000_000 };
/** The price of one output token in these tests. */
export const TOKEN_NANOS = 1_000n;
const PRICE: PriceStamp = {
  version: 'test',
  inputFemtos: '0',
  cachedInputFemtos: '0',
  outputFemtos: '1000000000',
  requestNanos: '0',
};

/**
 * A store with a clock that only the test moves, and a tenant and a key for each test. A prompt costs nothing here and
 * an output token TOKEN_NANOS, unless the test says otherwise.
 */
export class Fixture {
  nowMs = START_MS;
  store!: AdmissionStore;
  tenantId = newId('ten');
  keyId = newId('key');
  private version = 0n;
  private opened: AdmissionStore[] = [];

  constructor(private readonly openStore: OpenStore) {}

  async open(options: { claims?: Partial<ClaimLimits> } = {}): Promise<AdmissionStore> {
    const store = await this.openStore({ now: () => this.nowMs, ...options });
    this.opened.push(store);
    return store;
  }

  async setUp(): Promise<void> {
    this.store = await this.open();
  }

  async tearDown(): Promise<void> {
    await Promise.all(this.opened.map((store) => store.close()));
  }

  /** Applies a balance update with the next version. */
  async setBalance(
    balanceNanos: bigint,
    more: { releases?: string[]; suspended?: boolean; tenantId?: string; budgets?: Budget[] } = {},
  ): Promise<void> {
    const { releases = [], suspended = false, tenantId = this.tenantId, budgets = [] } = more;
    await this.store.applyBalanceUpdates([
      { tenantId, version: ++this.version, balanceNanos, releases, suspended, budgets },
    ]);
  }

  request(overrides: Partial<AdmitRequest> & { id?: string; tenantId?: string; keyId?: string } = {}): AdmitRequest {
    const { id = newId('req'), tenantId = this.tenantId, keyId = this.keyId, ...rest } = overrides;
    const startedAt = new Date(this.nowMs).toISOString();
    return {
      draft: { id, tenantId, keyId, model: 'sim-small', kind: 'chat', stream: true, price: PRICE, startedAt },
      tenantLimits: WIDE,
      keyLimits: WIDE,
      keyBudgetNanos: null,
      tenantBudgetNanos: null,
      promptTokens: 0,
      promptFemtos: 0n,
      outputFemtosPerToken: TOKEN_NANOS * 1_000_000n,
      wantOutputTokens: 10,
      minOutputTokens: 1,
      boundIsExact: true,
      ...rest,
    };
  }

  async admit(request: AdmitRequest = this.request()): Promise<AdmitResult> {
    const [result] = await this.store.admit([request]);
    if (result instanceof Error) throw result;
    return result!;
  }

  /** The look before this request. */
  lookOf({ draft, ...rest }: AdmitRequest, isPaid = true): LookRequest {
    const { tenantLimits, keyLimits, keyBudgetNanos, tenantBudgetNanos } = rest;
    const { tenantId, keyId } = draft;
    return { tenantId, keyId, tenantLimits, keyLimits, keyBudgetNanos, tenantBudgetNanos, isPaid };
  }

  async look(request: AdmitRequest = this.request(), isPaid = true): Promise<LookResult> {
    const [result] = await this.store.look([this.lookOf(request, isPaid)]);
    if (result instanceof Error) throw result;
    return result!;
  }

  /** The smallest request of this key, which `look` is about. */
  least(request: AdmitRequest, isPaid = true): AdmitRequest {
    return {
      ...request,
      promptTokens: 0,
      promptFemtos: 0n,
      outputFemtosPerToken: isPaid ? FEMTOS_PER_NANO : 0n,
      wantOutputTokens: 1,
      minOutputTokens: 1,
      boundIsExact: true,
    };
  }

  /** Admits a request and returns the hold's id. Fails when the request is refused. */
  async hold(overrides: Parameters<Fixture['request']>[0] = {}): Promise<string> {
    const request = this.request(overrides);
    expect(await this.admit(request)).toMatchObject({ kind: 'held' });
    return request.draft.id;
  }

  event(id: string, costNanos: bigint, more: Partial<UsageEvent> = {}): UsageEvent {
    return {
      ...this.request({ id }).draft,
      promptTokens: 0,
      cachedTokens: 0,
      completionTokens: Number(costNanos / TOKEN_NANOS),
      costNanos: String(costNanos),
      overrunNanos: '0',
      estimated: false,
      outcome: 'complete' satisfies Outcome,
      endedAt: new Date(this.nowMs).toISOString(),
      ...more,
    };
  }

  async settle(id: string, costNanos: bigint, more: Partial<UsageEvent> = {}): Promise<SettleResult> {
    const [result] = await this.store.settle([{ event: this.event(id, costNanos, more) }]);
    if (result instanceof Error) throw result;
    return result!;
  }

  async void(id: string): Promise<boolean> {
    const [done] = await this.store.void([{ id, tenantId: this.tenantId }]);
    return done!;
  }

  async progress(id: string, completionTokens: number | null): Promise<boolean> {
    const delivered: Progress['delivered'] =
      completionTokens === null
        ? null
        : { promptTokens: 0, cachedTokens: 0, completionTokens, costNanos: BigInt(completionTokens) * TOKEN_NANOS };
    const [pending] = await this.store.progress([{ id, tenantId: this.tenantId, delivered }]);
    if (pending instanceof Error) throw pending;
    return pending!;
  }

  /** The holds of this test's tenant that a sweep hands out. */
  async sweep(confirmAfterMs = 60_000, store = this.store): Promise<UsageEvent[]> {
    const events = await store.sweep({ limit: 10_000, confirmAfterMs });
    return events.filter((event) => event.tenantId === this.tenantId);
  }

  /**
   * The tenant's sums, after checking the running sums against the rows. Retries, because a store may recover for
   * requests before it recovers for this call.
   */
  async sums(tenantId = this.tenantId): Promise<Snapshot> {
    const [snapshot] = await eventually(() => this.store.snapshot({ tenantId, limit: 1 }));
    if (!snapshot) throw new Error(`the store does not know ${tenantId}`);
    expect(snapshot.pendingNanos).toBe(snapshot.holdRowsPendingNanos);
    expect(snapshot.settledNanos).toBe(snapshot.holdRowsSettledNanos);
    return snapshot;
  }
}

/** A new fixture before each test of the calling `describe`. */
export function useFixture(open: OpenStore): () => Fixture {
  let fixture: Fixture;
  beforeEach(async () => {
    fixture = new Fixture(open);
    await fixture.setUp();
  });
  afterEach(() => fixture.tearDown());
  return () => fixture;
}
