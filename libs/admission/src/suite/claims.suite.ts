import { newId } from '@tollgate/contracts';
import type { AnswerRequest, Claim } from '../admission-store';
import { admit, claimOf, recall, settle } from './claims.fixture';
import { TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

const KEEP_MS = 60_000;
const LEASE_MS = 10_000;

/** Claims of Idempotency-Keys: taken with a hold, settled with it, and free otherwise. */
export function claimsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  beforeEach(() => fixture().setBalance(10n ** 12n));

  it('admits one of many requests with the same claim, and refuses the others without a trace', async () => {
    const f = fixture();
    const other = await f.open();
    const claim = claimOf();
    const ask = (n: number) => Array.from({ length: n }, () => f.request({ claim }));
    const results = (await Promise.all([f.store.admit(ask(50)), other.admit(ask(50))])).flat();
    const kinds = results.map((result) =>
      result instanceof Error ? 'error' : result.kind === 'held' ? 'held' : result.reason,
    );
    expect(kinds.filter((kind) => kind === 'held')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'claimed')).toHaveLength(99);
    expect(await f.sums()).toMatchObject({ pendingHolds: 1, inFlight: 1n, pendingNanos: 10n * TOKEN_NANOS });
  });

  it('says that the request is running as long as its hold is pending, also to other processes', async () => {
    const f = fixture();
    const claim = claimOf();
    expect(await recall(f, claim.id)).toEqual({ kind: 'free' });
    const { id, got } = await admit(f, claim.id);
    expect(got).toBe('held');
    f.nowMs += 3_000;
    const running = { kind: 'running', fingerprint: claim.fingerprint, ageMs: 3_000 };
    expect(await recall(f, claim.id)).toEqual(running);
    expect(await recall(f, claim.id, await f.open())).toEqual(running);
    expect((await admit(f, claim.id)).got).toBe('claimed');
    // Past the lease, until a sweep has ended the hold: the request may have been charged.
    await f.progress(id, 2);
    f.nowMs += 2 * LEASE_MS;
    expect(await recall(f, claim.id)).toMatchObject({ kind: 'running' });
    expect((await admit(f, claim.id)).got).toBe('claimed');
    await f.sweep();
    expect(await recall(f, claim.id)).toMatchObject({ kind: 'settled', sealed: null });
    expect((await admit(f, claim.id)).got).toBe('claimed');
  });

  it('keeps the answer with the settlement, once, and gives it to every repeat', async () => {
    const f = fixture();
    const claim = claimOf();
    const { id } = await admit(f, claim.id);
    expect(await settle(f, id, claim.id, { sealed: 'first' })).toMatchObject({ kind: 'settled', repeated: false });
    const settled = { kind: 'settled', fingerprint: claim.fingerprint, sealed: 'first' };
    expect(await recall(f, claim.id)).toEqual(settled);
    expect(await settle(f, id, claim.id, { sealed: 'second' })).toMatchObject({ kind: 'settled', repeated: true });
    expect(await recall(f, claim.id, await f.open())).toEqual(settled);
    expect((await admit(f, claim.id)).got).toBe('claimed');
    // The release of the hold does not end the claim.
    await f.setBalance(10n ** 12n, { releases: [id] });
    expect(await recall(f, claim.id)).toEqual(settled);
    expect((await admit(f, claim.id)).got).toBe('claimed');
  });

  it('remembers a settled request whose answer was not kept', async () => {
    const f = fixture();
    const claim = claimOf();
    const { id } = await admit(f, claim.id);
    await settle(f, id, claim.id, { sealed: null });
    expect(await recall(f, claim.id)).toEqual({ kind: 'settled', fingerprint: claim.fingerprint, sealed: null });
    expect((await admit(f, claim.id)).got).toBe('claimed');
  });

  it('is free again when the request was void, or its hold expired before anything was delivered', async () => {
    const f = fixture();
    const claim = claimOf();
    const first = await admit(f, claim.id);
    await f.void(first.id);
    expect(await recall(f, claim.id)).toEqual({ kind: 'free' });
    const second = await admit(f, claim.id);
    expect(second.got).toBe('held');
    f.nowMs += LEASE_MS;
    expect(await f.sweep()).toEqual([]);
    expect(await recall(f, claim.id)).toEqual({ kind: 'free' });
    const third = await admit(f, claim.id);
    expect(third.got).toBe('held');
    expect(await settle(f, third.id, claim.id, { sealed: 'third' })).toMatchObject({ repeated: false });
    expect(await recall(f, claim.id)).toMatchObject({ kind: 'settled', sealed: 'third' });
  });

  it('is settled without an answer when a sweep has charged the request, so that no repeat is charged', async () => {
    const f = fixture();
    const [claim, other] = [claimOf(), claimOf()];
    const dead = await admit(f, claim.id);
    const bystander = await admit(f, other.id);
    await f.progress(dead.id, 3);
    f.nowMs += LEASE_MS / 2;
    await f.progress(bystander.id, 1);
    f.nowMs += LEASE_MS / 2;
    expect(await f.sweep()).toMatchObject([{ id: dead.id, outcome: 'expired' }]);
    const charged = { kind: 'settled', fingerprint: claim.fingerprint, sealed: null };
    expect(await recall(f, claim.id)).toEqual(charged);
    expect((await admit(f, claim.id)).got).toBe('claimed');
    expect(await recall(f, other.id)).toMatchObject({ kind: 'running' });
    // The dead gateway was only slow: its settlement comes too late for the claim, too.
    expect(await settle(f, dead.id, claim.id)).toMatchObject({ repeated: true, event: { outcome: 'expired' } });
    expect(await recall(f, claim.id)).toEqual(charged);
  });

  it('takes nothing for a request that is refused, so it may be asked again', async () => {
    const f = fixture();
    const claim = claimOf();
    const poor = { keyBudgetNanos: 0n };
    expect((await admit(f, claim.id, poor)).got).toBe('budget_reached');
    expect(await recall(f, claim.id)).toEqual({ kind: 'free' });
    expect((await admit(f, claim.id)).got).toBe('held');
  });

  it('finds a taken claim before any limit or credit is checked', async () => {
    const f = fixture();
    const claim = claimOf();
    const keyLimits = { ...WIDE, concurrency: 1, requestsPerMinute: 1 };
    expect((await admit(f, claim.id, { keyLimits })).got).toBe('held');
    await f.setBalance(0n, { suspended: true });
    expect((await admit(f, claim.id, { keyLimits })).got).toBe('claimed');
  });

  it('repeats an admission by id with its claim', async () => {
    const f = fixture();
    const { request } = await admit(f, claimOf().id);
    expect(await f.admit(request)).toMatchObject({ kind: 'held' });
    expect(await f.sums()).toMatchObject({ pendingHolds: 1 });
  });

  it('answers requests with and without claims in one call, and claims of other tenants are their own', async () => {
    const f = fixture();
    const claim = claimOf();
    const tenantId = newId('ten');
    await f.setBalance(10n ** 12n, { tenantId });
    const asks = [f.request(), f.request({ claim }), f.request({ claim, tenantId }), f.request(), f.request({ claim })];
    const results = await f.store.admit(asks);
    const kinds = results.map((result) =>
      result instanceof Error ? 'error' : result.kind === 'held' ? 'held' : result.reason,
    );
    expect(kinds).toEqual(['held', 'held', 'held', 'held', 'claimed']);
    const ends = asks.slice(0, 2).map((ask, i) => ({
      event: f.event(ask.draft.id, TOKEN_NANOS),
      ...(i === 1 && { answer: { claimId: claim.id, sealed: 'mine' } }),
    }));
    expect(await f.store.settle(ends)).toMatchObject([{ kind: 'settled' }, { kind: 'settled' }]);
    const [mine, foreign, unknown] = await f.store.recall([
      { tenantId: f.tenantId, claimId: claim.id },
      { tenantId, claimId: claim.id },
      { tenantId: newId('ten'), claimId: claim.id },
    ]);
    expect([mine, foreign, unknown]).toMatchObject([
      { kind: 'settled', answerChars: 'mine'.length },
      { kind: 'running' },
      { kind: 'free' },
    ]);
    expect(await f.store.recall([])).toEqual([]);
  });

  it('gives answers in the order of their requests, and none to another body, another tenant or a free claim', async () => {
    const f = fixture();
    const tenantId = newId('ten');
    await f.setBalance(10n ** 12n, { tenantId });
    const [one, two, empty, running] = [claimOf(), claimOf(), claimOf(), claimOf()];
    for (const [claim, sealed] of [
      [one, 'first'],
      [two, 'second'],
      [empty, null],
    ] as const)
      await settle(f, (await admit(f, claim.id)).id, claim.id, { sealed });
    const foreign = f.request({ claim: one, tenantId });
    expect(await f.store.admit([foreign])).toMatchObject([{ kind: 'held' }]);
    const event = { ...f.event(foreign.draft.id, TOKEN_NANOS), tenantId };
    await f.store.settle([{ event, answer: { claimId: one.id, sealed: 'foreign' } }]);
    await admit(f, running.id);
    const asked = ({ id, fingerprint }: Claim, more: object = {}): AnswerRequest => ({
      tenantId: f.tenantId,
      claimId: id,
      fingerprint,
      answerChars: 9,
      ...more,
    });
    const requests = [
      asked(two),
      asked(one, { tenantId }),
      asked(one, { fingerprint: 'another body' }),
      asked(one),
      asked(two, { tenantId }),
      asked(empty),
      asked(running),
      asked(claimOf()),
      asked(two),
    ];
    const answers = ['second', 'foreign', null, 'first', null, null, null, null, 'second'];
    expect(await f.store.answers(requests)).toEqual(answers);
    expect(await (await f.open()).answers(requests)).toEqual(answers);
    expect(await f.store.answers([])).toEqual([]);
  });

  it('gives a recalled answer also when its time is over meanwhile, but not once the claim is taken again', async () => {
    const f = fixture();
    const store = await f.open({ claims: { keepMs: KEEP_MS } });
    const claim = claimOf();
    await settle(f, (await admit(f, claim.id, {}, store)).id, claim.id, { store });
    const asked = [{ tenantId: f.tenantId, claimId: claim.id, fingerprint: claim.fingerprint, answerChars: 6 }];
    f.nowMs += KEEP_MS;
    expect(await store.answers(asked)).toEqual(['sealed']);
    const other = { id: claim.id, fingerprint: 'print of another body' };
    const { id } = await admit(f, claim.id, { claim: other }, store);
    expect(await store.answers(asked)).toEqual([null]);
    await settle(f, id, claim.id, { store, sealed: 'of another body' });
    expect(await store.answers(asked)).toEqual([null]);
  });
}
