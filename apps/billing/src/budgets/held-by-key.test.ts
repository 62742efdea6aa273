import { parseBalanceUpdate, PostgresAdmissionStore, type AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { CENT, useBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest } from '../testing/held-request.fixture';
import { heldByKey } from './held-by-key';

const database = useTestDatabase();

describe('what the running requests of each key hold', () => {
  const billing = useBilling(database);
  let store: PostgresAdmissionStore;
  beforeAll(async () => {
    store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
    await store.start();
  });
  afterAll(() => store.close());

  it('is the sum of the running requests of each key, without those that ended', async () => {
    const tenantId = await billing.tenant(100);
    await store.applyBalanceUpdates((await billing.updates(tenantId)).map(parseBalanceUpdate));
    expect(await heldByKey(store, tenantId)).toEqual({});
    for (const cents of [30n, 4n]) await holdRequest(store, tenantId, cents * CENT);
    await settleRequest(store, (await holdRequest(store, tenantId, CENT))!, 5n);
    expect(await heldByKey(store, tenantId)).toEqual({ key_test: String(34n * CENT) });
  });

  it('is not known while the store is away, or for a tenant with too many holds', async () => {
    const answering = (holds: () => Promise<unknown[]>) => ({ holds }) as unknown as AdmissionStore;
    expect(
      await heldByKey(
        answering(() => Promise.reject(new UnavailableError('away'))),
        'ten_a',
      ),
    ).toBeNull();
    expect(
      await heldByKey(
        answering(() => Promise.resolve(Array(2_001).fill({ nanos: 1n }))),
        'ten_a',
      ),
    ).toBeNull();
    const mistake = answering(() => Promise.reject(new TypeError('a mistake')));
    await expect(heldByKey(mistake, 'ten_a')).rejects.toThrow('a mistake');
  });
});
