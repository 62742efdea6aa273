import { parseBalanceUpdate, type AdmissionStore, type Snapshot } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import { useTestDatabase } from '@tollgate/testing';
import { CENT, useBilling } from '../testing/billing.fixture';
import { holdRequest, settleRequest, useAdmissionStore } from '../testing/held-request.fixture';
import { HeldSum } from './held-sum';

const database = useTestDatabase();

describe('what the running requests of all tenants hold', () => {
  const billing = useBilling(database);
  const store = useAdmissionStore(database);

  /** A store that answers from a list of pages, each once. */
  function pages(...answers: (Partial<Snapshot>[] | Error)[]): AdmissionStore & { asked: (string | undefined)[] } {
    const asked: (string | undefined)[] = [];
    const snapshot = ({ after }: { after?: string }) => {
      asked.push(after);
      const answer = answers.shift()!;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    };
    return { asked, snapshot } as unknown as AdmissionStore & { asked: (string | undefined)[] };
  }

  it('is what the running requests of all tenants hold, without those that ended', async () => {
    const [one, two] = [await billing.tenant(100), await billing.tenant(100)];
    await store.applyBalanceUpdates((await billing.updates(one)).map(parseBalanceUpdate));
    await store.applyBalanceUpdates((await billing.updates(two)).map(parseBalanceUpdate));
    await holdRequest(store, one, 30n * CENT);
    await holdRequest(store, two, 5n * CENT);
    await settleRequest(store, (await holdRequest(store, two, CENT))!, 5n);
    expect(await new HeldSum(store).now()).toEqual({ nanos: 35n * CENT, requests: 2 });
  });

  const row = (tenantId: string, more: Partial<Snapshot> = {}) => ({
    tenantId,
    pendingNanos: 1n,
    pendingHolds: 1,
    ...more,
  });

  it('goes on with the tenants after the last of a full page', async () => {
    const full = Array.from({ length: 200 }, (_, i) => row(`ten_${String(i).padStart(3, '0')}`));
    const asked = pages(full, [row('ten_a'), row('ten_b')]);
    expect(await new HeldSum(asked).now()).toEqual({ nanos: 202n, requests: 202 });
    expect(asked.asked).toEqual([undefined, 'ten_199']);
  });

  it('is not known when a tenant cannot be read, because a sum without it would be too small', async () => {
    expect(await new HeldSum(pages([row('ten_a'), row('ten_b', { unreadable: 'no number' })])).now()).toBeNull();
  });

  it.each([
    ['quick', 10, 5_000],
    ['slow', 400, 8_000],
  ])('rests after a %s walk, so that it takes a small part of the time of the store', async (_, tookMs, restMs) => {
    let [nowMs, walks] = [0, 0];
    const snapshot = () => {
      nowMs += tookMs;
      walks++;
      return Promise.resolve([row('ten_a')]);
    };
    const sum = new HeldSum({ snapshot } as unknown as AdmissionStore, () => nowMs);
    const held = { nanos: 1n, requests: 1 };
    expect(await sum.now()).toEqual(held);
    nowMs += restMs - 1;
    expect([await sum.now(), walks]).toEqual([held, 1]);
    nowMs += 1;
    expect([await sum.now(), walks]).toEqual([held, 2]);
  });

  it('is not known while the store is unavailable, and is read once for all who ask at the same time', async () => {
    expect(await new HeldSum(pages(new UnavailableError('away'))).now()).toBeNull();
    const asked = pages([]);
    const sum = new HeldSum(asked);
    expect(await Promise.all([sum.now(), sum.now(), sum.now()])).toHaveLength(3);
    expect(asked.asked).toHaveLength(1);
  });
});
