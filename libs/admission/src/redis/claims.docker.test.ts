import { newId } from '@tollgate/contracts';
import { rulesOf } from '@tollgate/redis';
import { PATIENT_CALL_MS, useRedis } from '@tollgate/testing';
import { Fixture, TOKEN_NANOS } from '../suite/store.fixture';
import { claimKeys } from './by-tenant';
import { RedisAdmissionStore } from './redis-admission-store';

const USER = 'gateway';
const PASSWORD = 'the-password-of-the-gateway';
const redis = useRedis({ args: ['--user', USER, 'on', `>${PASSWORD}`, ...rulesOf(USER).match(/\([^)]*\)|\S+/g)!] });
const KEEP_MS = 60_000;
const FILLER_BYTES = 32 * 1024 * 1024;

let fixture: Fixture;
beforeEach(async () => {
  fixture = new Fixture(async (options) => {
    const store = new RedisAdmissionStore({
      url: redis.url,
      callTimeoutMs: PATIENT_CALL_MS,
      claims: { keepMs: KEEP_MS },
      ...options,
    });
    await store.start();
    return store;
  });
  await fixture.setUp();
  await fixture.setBalance(10n ** 12n);
});
afterEach(() => fixture.tearDown());

const cli = (...args: string[]) => redis.exec(['redis-cli', '-p', String(redis.port), ...args]);

async function settleWithClaim(store = fixture.store): Promise<string> {
  const claimId = newId('key');
  const request = fixture.request({ claim: { id: claimId, fingerprint: 'print' } });
  expect(await store.admit([request])).toMatchObject([{ kind: 'held' }]);
  const event = fixture.event(request.draft.id, TOKEN_NANOS);
  expect(await store.settle([{ event, answer: { claimId, sealed: 'sealed' } }])).toMatchObject([{ kind: 'settled' }]);
  return claimId;
}

const recall = async (claimId: string, store = fixture.store) =>
  (await store.recall([{ tenantId: fixture.tenantId, claimId }]))[0];

it('a gateway with exactly its rights takes, settles and recalls claims', async () => {
  const url = redis.url.replace('://', `://${USER}:${PASSWORD}@`);
  const limits = { maxClaims: 2, maxAnswerChars: 12 };
  const store = new RedisAdmissionStore({ url, callTimeoutMs: PATIENT_CALL_MS, claims: limits });
  try {
    await store.start();
    const claims = [];
    for (let i = 0; i < 4; i++) claims.push(await settleWithClaim(store));
    const kinds = await Promise.all(claims.map(async (claimId) => recall(claimId, store)));
    const asked = { tenantId: fixture.tenantId, fingerprint: 'print', answerChars: 6 };
    const answers = await store.answers(claims.map((claimId) => ({ ...asked, claimId })));
    expect(answers).toEqual([null, null, 'sealed', 'sealed']);
    expect(kinds).toMatchObject([{ kind: 'free' }, { kind: 'free' }, { kind: 'settled' }, { kind: 'settled' }]);
  } finally {
    await store.close();
  }
});

it('Redis itself forgets the claims of a tenant that stays idle', async () => {
  await settleWithClaim();
  for (const key of claimKeys(fixture.tenantId).slice(5)) {
    const leftMs = Number(await cli('PTTL', key));
    expect([key, leftMs > 0 && leftMs <= KEEP_MS]).toEqual([key, true]);
  }
  for (const key of claimKeys(fixture.tenantId).slice(0, 4))
    if (Number(await cli('EXISTS', key)) === 1) expect(Number(await cli('PTTL', key))).toBe(-1);
});

it('a Redis that is nearly full keeps no answers, and still settles their claims', async () => {
  // Much more than what comes and goes with connections.
  await cli('SETRANGE', 'filler', String(FILLER_BYTES), 'x');
  const used = /used_memory:(\d+)/.exec(await cli('INFO', 'memory'))![1]!;
  await cli('CONFIG', 'SET', 'maxmemory', String(Math.ceil(Number(used) / 0.85)));
  try {
    expect(await recall(await settleWithClaim())).toMatchObject({ kind: 'settled', answerChars: null });
  } finally {
    await cli('CONFIG', 'SET', 'maxmemory', '0');
    await cli('DEL', 'filler');
  }
  expect(await recall(await settleWithClaim())).toMatchObject({ kind: 'settled', answerChars: 'sealed'.length });
});

it('a Redis that was emptied has forgotten its claims', async () => {
  const claimId = await settleWithClaim();
  await cli('FLUSHALL');
  expect(await recall(claimId)).toEqual({ kind: 'free' });
});
