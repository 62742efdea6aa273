import { parseBalanceUpdate, type AdmissionStore } from '@tollgate/admission';
import { newId, UnavailableError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, charge, useBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest, useAdmissionStore } from '../testing/held-request.fixture';
import { creditState } from './spendable';

// The books and the admission store are real.
const database = useTestDatabase();

describe('the credit of a tenant', () => {
  const billing = useBilling(database);
  const store = useAdmissionStore(database);
  const state = (tenantId: string, admission: AdmissionStore = store) =>
    creditState(billing.dataSource, admission, tenantId);

  it('is what the ledger has, what running requests hold, and what is left', async () => {
    const tenantId = await billing.tenant(100);
    await billing.gatherer.gather([charge(tenantId, 7n)]);
    await store.applyBalanceUpdates((await billing.updates(tenantId)).map(parseBalanceUpdate));
    const [running, ended] = [await holdRequest(store, tenantId, 30n * CENT), await holdRequest(store, tenantId, CENT)];
    expect(running).not.toBeNull();
    await settleRequest(store, ended!, 5n);
    expect(await state(tenantId)).toEqual({
      balanceCents: 100,
      unpostedNanos: '7',
      admission: {
        settledNanos: '5',
        heldNanos: String(30n * CENT),
        runningRequests: 1,
        spendableNanos: String(100n * CENT - 12n),
        availableNanos: String(70n * CENT - 12n),
      },
    });
  });

  it('is zero without books, and unknown to a store that has not heard of the tenant', async () => {
    expect(await state(newId('ten'))).toEqual({ balanceCents: 0, unpostedNanos: '0', admission: null });
  });

  it('still has the books while the admission store is down, and no other failure is taken for that', async () => {
    const tenantId = await billing.tenant(100);
    const failing = (error: Error) => ({ snapshot: () => Promise.reject(error) }) as unknown as AdmissionStore;
    expect(await state(tenantId, failing(new UnavailableError('away')))).toEqual({
      balanceCents: 100,
      unpostedNanos: '0',
      admission: null,
    });
    await expect(state(tenantId, failing(new TypeError('a mistake')))).rejects.toThrow('a mistake');
  });
});
