import { newId } from '@tollgate/contracts';
import type {
  AdmissionStore,
  AdmitRequest,
  AnswerRequest,
  Claim,
  ClaimLimits,
  RecallResult,
  SettleResult,
} from '../admission-store';
import { type Fixture, TOKEN_NANOS, useFixture, WIDE, type OpenStore } from './store.fixture';

const KEEP_MS = 60_000;
const LEASE_MS = 10_000;

type Recalled =
  Exclude<RecallResult, { kind: 'settled' }> | { kind: 'settled'; fingerprint: string; sealed: string | null };

/** Claims of Idempotency-Keys: taken with a hold, settled with it, and free otherwise. */
export function claimsSuite(open: OpenStore): void {
  const fixture = useFixture(open);
  const claimOf = (id = newId('key')) => ({ id, fingerprint: `print of ${id}` });

  async function admit(f: Fixture, claimId: string, more: Partial<AdmitRequest> = {}, store = f.store) {
    const request = f.request({ claim: claimOf(claimId), ...more });
    const [result] = await store.admit([request]);
    if (result instanceof Error) throw result;
    return { id: request.draft.id, request, got: result!.kind === 'held' ? 'held' : result!.reason };
  }

  /** With the answer, whose length must be the one that was recalled. */
  async function recall(f: Fixture, claimId: string, store = f.store): Promise<Recalled> {
    const claim = { tenantId: f.tenantId, claimId };
    const [result] = await store.recall([claim]);
    if (result instanceof Error) throw result;
    if (result!.kind !== 'settled') return result!;
    const { kind, fingerprint, answerChars } = result!;
    const [sealed] = await store.answers([{ ...claim, fingerprint, answerChars: answerChars ?? 0 }]);
    if (sealed instanceof Error) throw sealed;
    expect(answerChars).toBe(sealed === null ? null : sealed!.length);
    return { kind, fingerprint, sealed: sealed! };
  }

  async function settle(
    f: Fixture,
    id: string,
    claimId: string,
    { sealed = 'sealed', store = f.store }: { sealed?: string | null; store?: AdmissionStore } = {},
  ): Promise<SettleResult> {
    const [result] = await store.settle([{ event: f.event(id, TOKEN_NANOS), answer: { claimId, sealed } }]);
    if (result instanceof Error) throw result;
    return result!;
  }

  const bounded = (f: Fixture, claims: Partial<ClaimLimits>): Promise<AdmissionStore> => f.open({ claims });

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
    const store = await bounded(f, { keepMs: KEEP_MS });
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

  it('forgets a settled claim after its time, and not before', async () => {
    const f = fixture();
    const store = await bounded(f, { keepMs: KEEP_MS });
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
    const store = await bounded(f, { maxClaims });
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
    const store = await bounded(f, { maxAnswerChars: 100 });
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
