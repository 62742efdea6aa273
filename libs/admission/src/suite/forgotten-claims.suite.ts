import { admit, claimOf, recall, settle } from './claims.fixture';
import { useFixture, type OpenStore } from './store.fixture';

const KEEP_MS = 60_000;

/** How long claims and their answers are kept, and how many of a tenant. */
export function forgottenClaimsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(10n ** 12n));

  it('forgets a settled claim after its time, and not before', async () => {
    const f = fixture();
    const store = await f.open({ claims: { keepMs: KEEP_MS } });
    const claim = claimOf();
    const { id } = await admit(f, claim.id, {}, store);
    await settle(f, id, claim.id, { store });
    f.nowMs += KEEP_MS - 1;
    expect(await recall(f, claim.id, store)).toMatchObject({ kind: 'settled' });
    f.nowMs += 1;
    expect(await recall(f, claim.id, store)).toEqual({ kind: 'free' });
    const again = await admit(f, claim.id, {}, store);
    expect(again.got).toBe('held');
    expect(await recall(f, claim.id, store)).toMatchObject({ kind: 'running' });
    // The old answer is not the new request's.
    await settle(f, again.id, claim.id, { store, sealed: null });
    expect(await recall(f, claim.id, store)).toMatchObject({ kind: 'settled', sealed: null });
  });

  it('keeps the newest claims of a tenant, and never forgets one whose request is running', async () => {
    const f = fixture();
    const maxClaims = 5;
    const store = await f.open({ claims: { maxClaims } });
    const [running, oldest, ...others] = Array.from({ length: maxClaims + 3 }, () => claimOf().id);
    await admit(f, running!, {}, store);
    for (const claimId of [oldest!, ...others]) {
      f.nowMs += 1;
      const { id } = await admit(f, claimId, {}, store);
      await settle(f, id, claimId, { store });
    }
    expect(await recall(f, running!, store)).toMatchObject({ kind: 'running' });
    expect(await recall(f, oldest!, store)).toEqual({ kind: 'free' });
    for (const claimId of others.slice(-maxClaims + 1))
      expect(await recall(f, claimId, store)).toMatchObject({ kind: 'settled', sealed: 'sealed' });
  });

  it('drops the oldest answers of a tenant beyond its bound, and remembers that they were settled', async () => {
    const f = fixture();
    const store = await f.open({ claims: { maxAnswerChars: 100 } });
    const claims = Array.from({ length: 4 }, () => claimOf().id);
    for (const claimId of claims) {
      f.nowMs += 1;
      const { id } = await admit(f, claimId, {}, store);
      await settle(f, id, claimId, { store, sealed: 'x'.repeat(40) });
    }
    const kept = await Promise.all(claims.map((claimId) => recall(f, claimId, store)));
    expect(kept.map((one) => one.kind === 'settled' && one.sealed !== null)).toEqual([false, false, true, true]);
    expect(kept.every(({ kind }) => kind === 'settled')).toBe(true);
    // One that is too large by itself is not kept, and takes the others with it.
    const huge = claimOf().id;
    f.nowMs += 1;
    const { id } = await admit(f, huge, {}, store);
    await settle(f, id, huge, { store, sealed: 'x'.repeat(101) });
    expect(await recall(f, huge, store)).toMatchObject({ kind: 'settled', sealed: null });
  });
}
