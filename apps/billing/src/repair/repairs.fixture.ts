import { parseBalanceUpdate, type AdmissionStore, type Snapshot } from '@tollgate/admission';
import { newId } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import type { TestDatabase } from '@tollgate/testing';
import { Stores } from '../reconcile/stores';
import { CENT, useBilling, type TestBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest } from '../testing/held-request.fixture';
import { PoisonWatch, ROUND_MS } from './poison-watch';
import { TenantRepairs } from './tenant-repairs';

export const WATCHING = { watchEveryMs: ROUND_MS };
/** A version that billing never made. */
export const FORGED = 999_999_999n;

/** What the tests write into a store behind its back. Anyone with its credential can do the same. */
export interface Spoil {
  /** Sets a field of the tenant's row: `version`, `balance`, `settled`, `suspended` (true), `in_flight`. */
  set(
    tenantId: string,
    field: 'version' | 'balance' | 'settled' | 'suspended' | 'in_flight',
    value: string,
  ): Promise<unknown>;
  /** Absent where columns have types. */
  garbage?(tenantId: string): Promise<unknown>;
}

/** An admission store of the test, and the way to spoil it. */
export type OpenStore = () => { store: AdmissionStore; spoil: Spoil };

/** Real books, a real admission store, and their repairs. */
export class RepairTest {
  store!: AdmissionStore;
  spoil!: Spoil;
  repairs!: TenantRepairs;
  watch!: PoisonWatch;

  constructor(readonly billing: TestBilling) {}

  deliver = async (tenantId: string) =>
    this.store.applyBalanceUpdates((await this.billing.updates(tenantId)).map(parseBalanceUpdate));

  view = async (tenantId: string): Promise<Snapshot> => (await this.store.snapshot({ tenantId, limit: 1 }))[0]!;

  forge = (tenantId: string, version: bigint, balanceNanos: bigint, suspended = false) =>
    this.store.applyBalanceUpdates([{ tenantId, version, balanceNanos, suspended, releases: [] }]);

  topUp = (tenantId: string, amountCents: number) =>
    this.billing.topUps.add({ tenantId, amountCents, source: 'manual', ref: newId('msg') });

  /** Creates a tenant with 10.00 that the store knows. */
  tenant = async () => {
    const tenantId = await this.billing.tenant(1_000);
    await this.deliver(tenantId);
    return tenantId;
  };

  /** The draft of a held request, or null when it is refused. */
  admit = (tenantId: string, nanos: bigint) => holdRequest(this.store, tenantId, nanos);

  /** Holds and settles a request at this cost. Returns its id. */
  settle = async (tenantId: string, nanos: bigint) => {
    const draft = (await this.admit(tenantId, nanos))!;
    await settleRequest(this.store, draft, nanos);
    return draft.id;
  };

  alarms = async () => {
    const { values } = await metrics.getSingleMetric('tollgate_billing_poisoned_tenants_total')!.get();
    return values.reduce((sum, { value }) => sum + value, 0);
  };

  /** The tenant is sound in the watch's own judgement, and can spend exactly the balance of the books. */
  expectSound = async (tenantId: string, cents: bigint) => {
    expect(await this.repairs.repair({ tenantId, dryRun: true })).toMatchObject({ changes: [], repaired: false });
    expect(await this.admit(tenantId, cents * CENT + 1n)).toBeNull();
    const all = await this.admit(tenantId, cents * CENT);
    expect(all).not.toBeNull();
    await this.store.void([{ id: all!.id, tenantId }]);
  };
}

/** Call it inside a describe, so that it closes before the database is dropped. */
export function useRepairs(database: TestDatabase, openStore: OpenStore): RepairTest {
  const billing = useBilling(database);
  const test = new RepairTest(billing);
  beforeAll(async () => {
    Object.assign(test, openStore());
    await test.store.start();
    test.repairs = new TenantRepairs(billing.dataSource, billing.messages, test.store, { now: () => new Date() });
    test.watch = new PoisonWatch(new Stores(billing.dataSource, test.store), test.repairs, WATCHING);
  });
  afterAll(() => test.store.close());
  return test;
}
