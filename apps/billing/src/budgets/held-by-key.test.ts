import { parseBalanceUpdate, type AdmissionStore } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, useBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest, useAdmissionStore } from '../testing/held-request.fixture';
import { HeldByKey } from './held-by-key';

const database = useTestDatabase();

describe('what the running requests of each key hold', () => {
  const billing = useBilling(database);
  const store = useAdmissionStore(database);

  it('is the sum of the running requests of each key, without those that ended', async () => {
    const tenantId = await billing.tenant(100);
    await store.applyBalanceUpdates((await billing.updates(tenantId)).map(parseBalanceUpdate));
    expect(await new HeldByKey(store).of(tenantId)).toEqual({});
    for (const cents of [30n, 4n]) await holdRequest(store, tenantId, cents * CENT);
    await settleRequest(store, (await holdRequest(store, tenantId, CENT))!, 5n);
    expect(await new HeldByKey(store).of(tenantId)).toEqual({ key_test: String(34n * CENT) });
  });

  const answering = (holds: () => Promise<unknown[]>) => ({ holds }) as unknown as AdmissionStore;

  it('is not known while the store is unavailable, or for a tenant with too many holds', async () => {
    const away = answering(() => Promise.reject(new UnavailableError('away')));
    expect(await new HeldByKey(away).of('ten_a')).toBeNull();
    const many = answering(() => Promise.resolve(Array(2_001).fill({ nanos: 1n })));
    expect(await new HeldByKey(many).of('ten_a')).toBeNull();
    const mistake = answering(() => Promise.reject(new TypeError('a mistake')));
    await expect(new HeldByKey(mistake).of('ten_a')).rejects.toThrow('a mistake');
  });

  it.each([
    ['quick', 10, 1_000],
    ['slow', 300, 6_000],
  ])('is read once for all who ask, and again after a rest: a %s read', async (_, tookMs, restMs) => {
    let [nowMs, reads] = [0, 0];
    const held = new HeldByKey(
      answering(() => {
        nowMs += tookMs;
        reads++;
        return Promise.resolve([]);
      }),
      () => nowMs,
    );
    await Promise.all([held.of('ten_a'), held.of('ten_a')]);
    nowMs += restMs - 1;
    await held.of('ten_a');
    expect(reads).toBe(1);
    // Another tenant does not wait.
    await held.of('ten_b');
    expect(reads).toBe(2);
    nowMs += 1;
    await held.of('ten_a');
    expect(reads).toBe(3);
  });
});
