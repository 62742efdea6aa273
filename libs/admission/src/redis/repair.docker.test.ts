import { configureLogging } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, useRedis } from '@tollgate/testing';
import Redis from 'ioredis';
import type { Repair } from '../admission-store';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';
import { RedisAdmissionStore } from './redis-admission-store';

// A store that closes while it registers its tenants would log a warning.
configureLogging({ level: 'silent', pretty: false });

// A Redis credential can write anything into any field. The books say version 5 and a balance of 100 tokens.
let client: Redis;
// Before Redis is removed.
afterAll(() => client.quit());
const redis = useRedis();
beforeAll(() => {
  client = new Redis(redis.url);
});

const fixture = useFixture(async (options) => {
  const store = new RedisAdmissionStore({ url: redis.url, callTimeoutMs: PATIENT_CALL_MS, ...options });
  await store.start();
  return store;
});
const key = (name: string) => `tga:{${fixture().tenantId}}:${name}`;
const books = (): Repair => ({
  tenantId: fixture().tenantId,
  version: 5n,
  balanceNanos: 100n * TOKEN_NANOS,
  suspended: false,
  releases: [],
  budgets: [],
  spent: [],
});
const view = async () => (await fixture().store.snapshot({ tenantId: fixture().tenantId, limit: 1 }))[0]!;

/** One running request of 10 tokens, and one that was settled at 4. */
async function working(): Promise<{ running: string; settled: string }> {
  const f = fixture();
  await f.store.applyBalanceUpdates([{ ...books(), releases: [] }]);
  const [running, settled] = [await f.hold(), await f.hold()];
  await f.settle(settled, 4n * TOKEN_NANOS);
  return { running, settled };
}

/**
 * Everything works again: the running request settles, its record is handed out and released, and credit is what the
 * books say.
 */
async function expectSound({ running, settled }: { running?: string; settled?: string }): Promise<void> {
  const f = fixture();
  if (running) expect(await f.settle(running, 6n * TOKEN_NANOS)).toMatchObject({ kind: 'settled' });
  f.nowMs += 120_000;
  const owed = [running, settled].filter((id) => id !== undefined).sort();
  expect((await f.sweep()).map(({ id }) => id).sort()).toEqual(owed);
  await f.store.applyBalanceUpdates([{ ...books(), version: 6n, balanceNanos: 90n * TOKEN_NANOS, releases: owed }]);
  expect(await f.sums()).toMatchObject({
    version: 6n,
    balanceNanos: 90n * TOKEN_NANOS,
    settledNanos: 0n,
    pendingNanos: 0n,
    inFlight: 0n,
  });
  const tokens = (wantOutputTokens: number) => f.request({ wantOutputTokens, minOutputTokens: wantOutputTokens });
  expect(await f.admit(tokens(91))).toMatchObject({ kind: 'held', outputTokens: 90 });
}

describe('a repair while metering is down', () => {
  const spentNanos = 60n * TOKEN_NANOS;
  const spoiled: [string, () => Promise<unknown>][] = [
    ['the tenant’s sum', () => client.hset(key('credit'), 'spent', 'x')],
    ['the tenant’s month', () => client.hset(key('credit'), 'month', 'x')],
    ['the tenant’s missing sum', () => client.hdel(key('credit'), 'spent')],
    ['the tenant’s whole state', () => client.set(key('credit'), 'garbage')],
    ['the sum of a key', () => client.hset(key('keys'), fixture().keyId, Buffer.from([0xc1]))],
    ['a removed key', () => client.hdel(key('keys'), fixture().keyId)],
    ['all keys', () => client.set(key('keys'), 'garbage')],
  ];

  it.each(spoiled)('asks again for unreadable sums of the month: %s', async (_what, spoil) => {
    await working();
    await client.hset(key('credit'), 'restored', '1');
    await spoil();
    await fixture().store.repair(books());
    expect(await client.hexists(key('credit'), 'restored')).toBe(0);
    const keys = [{ keyId: fixture().keyId, nanos: spentNanos }];
    const gateway = new RedisAdmissionStore({
      url: redis.url,
      callTimeoutMs: PATIENT_CALL_MS,
      now: () => fixture().nowMs,
      onUnknownTenant: () =>
        Promise.resolve({ update: books(), spent: [{ month: '2026-05', tenantNanos: spentNanos, keys }] }),
    });
    await gateway.start();
    try {
      await gateway.applyBalanceUpdates([books()]);
      await eventually(async () => expect(await client.hget(key('credit'), 'restored')).toBe('1'));
    } finally {
      await gateway.close();
    }
    const tokens = { wantOutputTokens: 50, minOutputTokens: 1 };
    const byTenant = fixture().request({ ...tokens, tenantBudgetNanos: spentNanos });
    expect(await fixture().admit(byTenant)).toMatchObject({ reason: 'budget_reached', scope: 'tenant' });
    const byKey = fixture().request({ ...tokens, keyBudgetNanos: spentNanos });
    expect(await fixture().admit(byKey)).toMatchObject({ reason: 'budget_reached', scope: 'key' });
  });

  it('keeps readable sums of the month, and asks nobody: requests do not wait for metering', async () => {
    await working();
    await client.hset(key('credit'), 'restored', '1');
    const spent = await client.hget(key('credit'), 'spent');
    expect(Number(spent)).toBeGreaterThan(0);
    await client.hset(key('credit'), 'balance', '1000000000000000');
    await fixture().store.repair(books());
    expect(await client.hmget(key('credit'), 'restored', 'spent')).toEqual(['1', spent]);
  });
});

describe('a repair of what was written into Redis', () => {
  const FIELDS: [field: string, value: string][] = [
    ['version', '999999999'],
    ['version', '99999999999999999999999999999999999'],
    ['version', 'x'],
    ['balance', '1000000000000000'],
    ['balance', '-1'],
    ['balance', 'nan'],
    ['balance', 'inf'],
    ['balance', '1.5'],
    ['balance', '\0\xff'],
    ['balance', '9'.repeat(5_000)],
    ['settled', '-1000000000'],
    ['settled', '{}'],
    ['pending', '-1000000000'],
    ['pending', ''],
    ['in_flight', '1000000000'],
    ['in_flight', 'many'],
    ['suspended', '1'],
    ['suspended', 'true'],
    ['month', 'may'],
    ['month', '99999999'],
    ['spent', 'x'],
    ['requests_us', '9000000000000000'],
    ['tokens_us', '9000000000000000'],
    ['tokens_us', 'x'],
    ['written_us', '9000000000000000'],
    ['deadline_ms', 'never'],
    ['deadline_ms', '9000000000000000'],
    ['progressed_ms', 'x'],
    ['hold_mean_ms', 'x'],
    ['model_means', 'x'],
    ['withdrawals', 'x'],
    ['budget', 'x'],
    ['life', 'another'],
    ['admissions', 'x'],
    ['had_admissions', 'x'],
    ['history', '\0\xff'],
  ];
  it.each(FIELDS)('cures the field %s as %j', async (field, value) => {
    const held = await working();
    await client.hset(key('credit'), field, value);
    expect(await fixture().store.repair(books())).toEqual({ droppedHolds: 0 });
    const sound = await view();
    expect(sound.unreadable).toBeUndefined();
    expect(sound).toMatchObject({
      version: 5n,
      balanceNanos: 100n * TOKEN_NANOS,
      suspended: false,
      settledNanos: 4n * TOKEN_NANOS,
      pendingNanos: 10n * TOKEN_NANOS,
      inFlight: 1n,
      withdrawnNanos: 0n,
    });
    await expectSound(held);
  });

  it('a snapshot shows a readable state, or says that it is unreadable', async () => {
    await working();
    await client.hset(key('credit'), 'balance', 'x');
    expect(await view()).toMatchObject({ unreadable: expect.any(String) });
    await client.hset(key('credit'), 'balance', 'inf');
    expect(await view()).toMatchObject({ unreadable: expect.any(String) });
  });

  it.each(['credit', 'keys', 'pending', 'settled', 'unconfirmed'])(
    'cures the key %s as one of another type',
    async (name) => {
      const held = await working();
      await client.del(key(name));
      await client.set(key(name), 'garbage');
      await fixture().store.repair(books());
      expect((await view()).unreadable).toBeUndefined();
      await expectSound({
        ...(name === 'pending' ? {} : { running: held.running }),
        ...(name === 'settled' ? {} : { settled: held.settled }),
      });
    },
  );

  it('drops and counts unreadable holds, budgets and keys, which then affect nobody', async () => {
    const f = fixture();
    const held = await working();
    let packedHolds = 0;
    const packed = (expression: string) =>
      client.eval(
        `redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(${expression}))`,
        1,
        key('pending'),
        `req_${++packedHolds}`,
      );
    await client.hset(key('pending'), 'req_a', 'garbage', 'req_b', '');
    await packed(`'key_x', -5, 1, 1, 1, 1, false, false, 1, 1, false, '{}', 1`);
    await packed(`'key_x', 5, 1, 1, 0, 1, false, false, 1, 1, false, '{}', 1`);
    await packed(`'key_x', 5, 1, 1, 1, 1, false, false, 1, 1, 'x', '{}', 1`);
    await client.hset(key('settled'), 'req_c', 'garbage');
    await client.eval(`redis.call('HSET', KEYS[1], 'req_d', cmsgpack.pack(-5, '{}'))`, 1, key('settled'));
    await client.eval(`redis.call('HSET', KEYS[1], 'req_e', cmsgpack.pack(5, '3'))`, 1, key('settled'));
    await client.zadd(key('unconfirmed'), '+inf', 'req_c', '-inf', 'req_nobody');
    await client.hset(key('keys'), f.keyId, 'garbage', `${f.keyId}:budget`, 'garbage', 'key_y:budget', 'garbage');
    expect(await f.store.repair(books())).toEqual({ droppedHolds: 8 });
    expect(await view()).toMatchObject({ pendingHolds: 1, settledHolds: 1 });
    await expectSound(held);
  });
});

it('a sweep reaches the settled holds behind stray ids', async () => {
  const { settled } = await working();
  const strays = Array.from({ length: 20 }, (_, n) => ['0', `req_stray${n}`]).flat();
  await client.zadd(key('unconfirmed'), ...strays);
  const f = fixture();
  f.nowMs += 120_000;
  const { store } = f;
  const found: string[] = [];
  for (let n = 0; n < 100 && found.length === 0; n++)
    found.push(
      ...(await store.sweep({ limit: 5, confirmAfterMs: 60_000 }))
        .filter(({ tenantId, outcome }) => tenantId === f.tenantId && outcome !== 'expired')
        .map(({ id }) => id),
    );
  expect(found).toEqual([settled]);
});
