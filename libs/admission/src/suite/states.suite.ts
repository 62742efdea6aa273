import { newId } from '@tollgate/contracts';
import { forbiddenTransitions } from '../admission-metrics';
import { DEFAULT_LEASE_MS, type AdmissionStore, type ExtendRequest, type ExtendResult } from '../admission-store';
import {
  HOLD_TRANSITIONS,
  REFUSABLE_OPERATIONS,
  transition,
  type HoldOperation,
  type HoldState,
} from '../operations/hold-states';
import { TOKEN_NANOS, useFixture, type Fixture, type OpenStore } from './store.fixture';

const NEVER_MS = 1_000_000_000;

/** Every way into a state. Each returns the hold's id. */
const WAYS: Record<HoldState, Record<string, (f: Fixture) => Promise<string>>> = {
  none: {
    'was never admitted': () => Promise.resolve(newId('req')),
    'was void': async (f) => {
      const id = await f.hold();
      await f.void(id);
      return id;
    },
    'expired with nothing delivered': async (f) => {
      const id = await f.hold();
      f.nowMs += DEFAULT_LEASE_MS;
      await f.sweep();
      return id;
    },
    'was released': async (f) => {
      const id = await f.hold();
      await f.settle(id, TOKEN_NANOS);
      await f.setBalance(1_000n * TOKEN_NANOS, { releases: [id] });
      return id;
    },
  },
  pending: {
    'was admitted': (f) => f.hold(),
    'was extended': async (f) => {
      const id = await f.hold();
      await f.store.extend([extension(f, id)]);
      return id;
    },
    'has recorded progress': async (f) => {
      const id = await f.hold();
      await f.progress(id, 1);
      return id;
    },
  },
  settled: {
    'was settled': async (f) => {
      const id = await f.hold();
      await f.settle(id, TOKEN_NANOS);
      return id;
    },
    'expired with something delivered': async (f) => {
      const id = await f.hold();
      await f.progress(id, 1);
      f.nowMs += DEFAULT_LEASE_MS;
      await f.sweep(NEVER_MS);
      return id;
    },
    'was handed out': async (f) => {
      const id = await f.hold();
      await f.settle(id, TOKEN_NANOS);
      await f.sweep(0);
      return id;
    },
  },
};

type Outcome = 'done' | 'refused' | 'mistake';
const done = (applied: boolean): Outcome => (applied ? 'done' : 'refused');
const extension = (f: Fixture, id: string) => ({ id, tenantId: f.tenantId, wantNanos: TOKEN_NANOS, minNanos: 1n });

async function extend(store: AdmissionStore, request: ExtendRequest): Promise<ExtendResult> {
  const [result] = await store.extend([request]);
  if (result instanceof Error) throw result;
  return result!;
}

/** The call of each operation. Sweeps and balance updates have no result: `done`. */
const OPERATIONS: Record<HoldOperation, (f: Fixture, id: string, state: HoldState) => Promise<Outcome>> = {
  admit: async (f, id) => ((await f.store.admit([f.request({ id })]))[0] instanceof RangeError ? 'mistake' : 'done'),
  extend: async (f, id) => done((await extend(f.store, extension(f, id))).kind === 'extended'),
  progress: async (f, id) => done(await f.progress(id, 2)),
  settle: async (f, id) => done((await f.settle(id, 2n * TOKEN_NANOS)).kind === 'settled'),
  void: async (f, id) => done(await f.void(id)),
  expire: async (f, id, state) => {
    if (state === 'pending') await f.progress(id, 2);
    return expire(f);
  },
  expireEmpty: (f) => expire(f),
  handOut: async (f) => {
    await f.sweep(0);
    return 'done';
  },
  release: async (f, id) => {
    await f.setBalance(1_000n * TOKEN_NANOS, { releases: [id] });
    return 'done';
  },
};

async function expire(f: Fixture): Promise<Outcome> {
  f.nowMs += DEFAULT_LEASE_MS;
  await f.sweep(NEVER_MS);
  return 'done';
}

const CASES = (Object.keys(WAYS) as HoldState[]).flatMap((state) =>
  Object.entries(WAYS[state]).flatMap(([way, arrive]) =>
    (Object.keys(HOLD_TRANSITIONS) as HoldOperation[])
      // This hold has recorded a delivery.
      .filter((operation) => way !== 'has recorded progress' || operation !== 'expireEmpty')
      .map((operation) => ({ state, way, arrive, operation, to: transition(state, operation) })),
  ),
);

/** The table of operations/hold-states.ts: every operation in every state, by every way into the state. */
export function statesSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(1_000n * TOKEN_NANOS));

  it.each(CASES)('$operation leads a hold that $way ($state) to: $to', async ({ state, arrive, operation, to }) => {
    const f = fixture();
    const id = await arrive(f);
    expect(await stateOf(f)).toBe(state);
    const before = { sums: await f.sums(), counted: await counts() };
    const outcome = await OPERATIONS[operation](f, id, state);
    const isState = to === 'none' || to === 'pending' || to === 'settled';
    expect(outcome).toBe(to === 'forbidden' ? 'refused' : to === 'mistake' ? 'mistake' : 'done');
    expect(await stateOf(f)).toBe(isState ? to : state);
    const counted = Object.fromEntries(REFUSABLE_OPERATIONS.map((name) => [name, before.counted[name]!]));
    if (to === 'forbidden') counted[operation]! += 1;
    expect(await counts()).toEqual(counted);
    // The balance update brings a new version; holds and money must not change.
    if (!isState) expect(await f.sums()).toEqual({ ...before.sums, version: expect.any(BigInt) });
  });

  it("refuses every operation on another tenant's hold", async () => {
    const f = fixture();
    const id = await f.hold();
    const before = { sums: await f.sums(), counted: await counts() };
    const tenantId = newId('ten');
    expect(await reach(f.store, f, id, tenantId)).toEqual(['forbidden', false, false, 'forbidden']);
    await f.setBalance(0n, { tenantId, releases: [id] });
    expect(await f.sums()).toEqual(before.sums);
    const after = await counts();
    for (const name of REFUSABLE_OPERATIONS) expect(after[name]! - before.counted[name]!).toBe(1);
  });
}

async function reach(store: AdmissionStore, f: Fixture, id: string, tenantId: string): Promise<unknown[]> {
  const extended = await extend(store, { ...extension(f, id), tenantId });
  const [alive] = await store.progress([{ id, tenantId, delivered: null }]);
  const [voided] = await store.void([{ id, tenantId }]);
  const [settled] = await store.settle([{ event: f.event(id, 0n, { tenantId }) }]);
  return [extended.kind, alive, voided, (settled as { kind: string }).kind];
}

/** The state of the tenant's only hold. */
async function stateOf(f: Fixture): Promise<HoldState> {
  const { pendingHolds, settledHolds } = await f.sums();
  return pendingHolds > 0 ? 'pending' : settledHolds > 0 ? 'settled' : 'none';
}

/** The metric that a process serves, by operation. */
async function counts(): Promise<Record<string, number>> {
  const { values } = await forbiddenTransitions.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels.operation, value]));
}
