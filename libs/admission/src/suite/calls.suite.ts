import { newId } from '@tollgate/contracts';
import { useFixture, type OpenStore } from './store.fixture';

/** The request limit of the management API. */
export function callsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  const PER_MINUTE = 6;
  const call = (tokenId: string) => ({ tenantId: fixture().tenantId, tokenId, perMinute: PER_MINUTE });

  it('allows a minute’s calls at once, shared by all processes, and then one an interval', async () => {
    const f = fixture();
    const stores = [f.store, await f.open()];
    const token = call(newId('tok'));
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => stores[i % 2]!.takeCall(token)));
    expect(all.filter((wait) => wait === 0)).toHaveLength(PER_MINUTE);
    expect(all.filter((wait) => wait > 0)).toEqual(Array(14).fill(10_000));
    f.nowMs += 9_999;
    expect(await stores[1]!.takeCall(token)).toBe(1);
    f.nowMs += 1;
    expect(await stores[1]!.takeCall(token)).toBe(0);
    expect(await stores[0]!.takeCall(token)).toBe(10_000);
    f.nowMs += 60_000;
    const later = await Promise.all(Array.from({ length: 7 }, () => f.store.takeCall(token)));
    expect(later.filter((wait) => wait === 0)).toHaveLength(PER_MINUTE);
  });

  it('limits each token by itself, and refuses for no longer than a minute after a clock went back', async () => {
    const f = fixture();
    const [one, other] = [call(newId('tok')), call(newId('tok'))];
    for (let n = 0; n < PER_MINUTE; n++) expect(await f.store.takeCall(one)).toBe(0);
    expect(await f.store.takeCall(one)).toBe(10_000);
    expect(await f.store.takeCall(other)).toBe(0);
    f.nowMs -= 3_600_000;
    expect(await f.store.takeCall(one)).toBe(10_000);
    expect(await f.store.takeCall(other)).toBe(10_000);
    f.nowMs += 10_000;
    for (const token of [one, other]) {
      expect(await f.store.takeCall(token)).toBe(0);
      expect(await f.store.takeCall(token)).toBe(10_000);
    }
  });
}
