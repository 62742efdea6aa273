import { parseBalanceUpdate, type AdmissionStore, type Snapshot } from '@tollgate/admission';
import type { TestDatabase } from '@tollgate/testing';
import { useBilling, type TestBilling } from '../testing/billing.fixture';
import { MoneyOut } from './money-out';

/** Billing, and money out beside a real admission store. */
export interface MoneyOutTrial {
  readonly billing: TestBilling;
  store: AdmissionStore;
  moneyOut: MoneyOut;
  /** Money out that asks another store. */
  over(store: AdmissionStore): MoneyOut;
  /** Delivers like the relay and the gateway: all updates so far, with any number of repeats. */
  deliver(tenantId: string): Promise<void>;
  /** What the store knows of the tenant. */
  sums(tenantId: string): Promise<Snapshot>;
}

/** Call it inside a describe, so that it closes before the database is dropped. */
export function useMoneyOut(
  database: TestDatabase,
  openStore: (databaseUrl: string) => AdmissionStore,
  now = () => new Date(),
): MoneyOutTrial {
  const billing = useBilling(database);
  const options = { postingIntervalMs: 0, now, currency: () => 'USD' };
  const trial = {
    billing,
    over: (store) => new MoneyOut(billing.dataSource, billing.messages, store, options),
    deliver: async (tenantId) =>
      trial.store.applyBalanceUpdates((await billing.updates(tenantId)).map(parseBalanceUpdate)),
    sums: async (tenantId) => (await trial.store.snapshot({ tenantId, limit: 1 }))[0]!,
  } as MoneyOutTrial;
  beforeAll(async () => {
    trial.store = openStore(database.url);
    await trial.store.start();
    trial.moneyOut = trial.over(trial.store);
  });
  afterAll(() => trial.store.close());
  return trial;
}
