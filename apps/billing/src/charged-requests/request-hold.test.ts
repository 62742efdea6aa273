import { parseBalanceUpdate, type AdmissionStore } from '@tollgate/admission';
import { newId, RequestError, UnavailableError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, useBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest, useAdmissionStore } from '../testing/held-request.fixture';
import { holdOfRequest } from './request-hold';

// The books and the admission store are real.
const database = useTestDatabase();

describe('the hold of a request', () => {
  const billing = useBilling(database);
  const store = useAdmissionStore(database);

  it('is what a running request holds, then its cost; for its tenant alone', async () => {
    const tenantId = await billing.tenant(100);
    await store.applyBalanceUpdates((await billing.updates(tenantId)).map(parseBalanceUpdate));
    const drafts = [await holdRequest(store, tenantId, 30n * CENT), await holdRequest(store, tenantId, CENT)];
    const [running, ended] = drafts.map((draft) => draft!);
    await settleRequest(store, ended!, 5n);
    const hold = async (requestId: string, of = tenantId) =>
      (await holdOfRequest(store, { tenantId: of, requestId })).hold;
    const { keyId, model, startedAt } = running!;
    const about = { keyId, model, kind: 'chat', stream: false, startedAt };
    expect(await hold(running!.id)).toMatchObject({ state: 'pending', nanos: String(30n * CENT) });
    expect((await hold(running!.id))!.running).toEqual({ ...about, delivered: null });
    const counts = { promptTokens: 9, cachedTokens: 1, completionTokens: 7 };
    const served = { model: 'fallback', price: running!.price };
    await store.progress([{ id: running!.id, tenantId, delivered: { ...counts, costNanos: 6n, served } }]);
    const delivered = { ...counts, costNanos: '6' };
    expect((await hold(running!.id))!.running).toEqual({ ...about, model: 'fallback', delivered });
    expect(await hold(ended!.id)).not.toHaveProperty('running');
    expect(await hold(ended!.id)).toMatchObject({ state: 'settled', nanos: '5', quietMs: expect.any(Number) });
    expect([await hold(running!.id, await billing.tenant()), await hold(newId('req'))]).toEqual([null, null]);
  });

  it('is unknown while the store is unavailable, and no other failure is taken for that', async () => {
    const asked = { tenantId: newId('ten'), requestId: newId('req') };
    const failing = (error: Error) => ({ holds: () => Promise.reject(error) }) as unknown as AdmissionStore;
    expect(await holdOfRequest(failing(new UnavailableError('away')), asked)).toEqual({ hold: null });
    await expect(holdOfRequest(failing(new TypeError('a mistake')), asked)).rejects.toThrow('a mistake');
    for (const wrong of [{ tenantId: 'x' }, { requestId: 'x' }])
      await expect(holdOfRequest(store, { ...asked, ...wrong })).rejects.toThrow(RequestError);
  });
});
