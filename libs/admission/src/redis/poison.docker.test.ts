import { newId } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { PATIENT_CALL_MS, useRedis } from '@tollgate/testing';
import Redis from 'ioredis';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';
import { RedisAdmissionStore } from './redis-admission-store';

// A Redis credential can write anything into any field. One tenant's poison must not stop the usage of the others.
let client: Redis;
// Before Redis is removed.
afterAll(() => client.quit());
const redis = useRedis();
beforeAll(() => {
  client = new Redis(redis.url);
});
beforeEach(() => client.flushdb());

const fixture = useFixture(async (options) => {
  const store = new RedisAdmissionStore({ url: redis.url, callTimeoutMs: PATIENT_CALL_MS, ...options });
  await store.start();
  return store;
});
const key = (tenantId: string, name: string) => `tga:{${tenantId}}:${name}`;

/** The ids of a tenant with credit, and of a request of it that is settled and not confirmed. */
async function owed(): Promise<{ tenantId: string; id: string }> {
  const f = fixture();
  f.tenantId = newId('ten');
  await f.setBalance(1_000n * TOKEN_NANOS);
  const id = await f.hold();
  await f.settle(id, TOKEN_NANOS);
  return { tenantId: f.tenantId, id };
}

const sweep = async () => {
  const events = await fixture().store.sweep({ limit: 100, confirmAfterMs: 60_000 });
  return events.map(({ id }) => id).sort();
};

it.each([
  ['no JSON', `'garbage'`],
  ['null', `'null'`],
  ['a number', `'5'`],
  ['a text', `'"text"'`],
  ['an object of nothing', `'{}'`],
  ['the event of another tenant', `'{"id":"req_x","tenantId":"ten_other"}'`],
  ['no text', '5'],
  ['a list', `{ 'a' }`],
  ['missing', 'nil'],
])('a sweep hands out all others if a record is %s, and the hold is listed', async (_what, record) => {
  const [poisoned, other] = [await owed(), await owed()];
  const { tenantId, id } = poisoned;
  const write = `redis.call('HSET', KEYS[1], 'req_poison', cmsgpack.pack(7, ${record}))`;
  await client.eval(write, 1, key(tenantId, 'settled'));
  await client.zadd(key(tenantId, 'unconfirmed'), '0', 'req_poison');
  fixture().nowMs += 120_000;
  expect(await sweep()).toEqual([id, other.id].sort());
  const holds = await fixture().store.holds({ tenantId, limit: 10 });
  expect(holds.find((hold) => hold.id === 'req_poison')).toMatchObject({ state: 'settled', nanos: 7n });
  // Reconcile names a hold that has been quiet for so long.
  expect(holds.find((hold) => hold.id === 'req_poison')!.quietMs).toBeGreaterThan(3_600_000);
});

it('a sweep goes on with all others if the holds of a tenant cannot be read, and is no failure', async () => {
  const [poisoned, other] = [await owed(), await owed()];
  await client.hset(key(poisoned.tenantId, 'pending'), 'req_poison', 'garbage');
  await client.hset(key(poisoned.tenantId, 'credit'), 'deadline_ms', '1');
  fixture().nowMs += 120_000;
  expect(await sweep()).toEqual([other.id]);
  // Nothing is left to hand out.
  expect(await sweep()).toEqual([]);
  const { values } = await metrics.getSingleMetric('tollgate_holds')!.get();
  expect(values).toContainEqual({ labels: { state: 'settled' }, value: 1 });
});

it.each([
  ['no deadline', `'key_x', 5, 1, 1, 1, 1`],
  ['a deadline that is no number', `'key_x', 5, 1, 1, 1, 1, false, false, 'x', 1, false, '{}'`],
  ['no last heartbeat', `'key_x', 5, 1, 1, 1, 1, false, false, 1, false, false, '{}'`],
])('a tenant with a pending hold with %s counts as unreadable, until it is repaired', async (_what, packed) => {
  const { tenantId, id } = await owed();
  const write = `redis.call('HSET', KEYS[1], 'req_poison', cmsgpack.pack(${packed}))`;
  await client.eval(write, 1, key(tenantId, 'pending'));
  const { store } = fixture();
  const view = async () => (await store.snapshot({ tenantId, limit: 1 }))[0]!;
  expect((await view()).unreadable).toEqual(expect.any(String));
  const holds = await store.holds({ tenantId, limit: 10 });
  expect(holds.map((hold) => hold.id).sort()).toEqual([id, 'req_poison'].sort());
  const books = { tenantId, version: 9n, balanceNanos: 0n, suspended: false, releases: [], budgets: [], spent: [] };
  expect(await store.repair(books)).toEqual({ droppedHolds: 1 });
  expect(await view()).toMatchObject({ pendingHolds: 0, settledHolds: 1 });
});

it('a tenant with a hold whose id the books cannot have counts as unreadable, until it is repaired', async () => {
  const { tenantId, id } = await owed();
  const hold = `'key_x', 5, 1, 1, 1, 1, false, false, 4e12, 1, false, '{}'`;
  await client.eval(`redis.call('HSET', KEYS[1], 'req_\\0', cmsgpack.pack(${hold}))`, 1, key(tenantId, 'pending'));
  const record = `cmsgpack.pack(5, '{"keyId":"key_x"}')`;
  await client.eval(`redis.call('HSET', KEYS[1], 'req_\\0', ${record})`, 1, key(tenantId, 'settled'));
  const { store } = fixture();
  const view = async () => (await store.snapshot({ tenantId, limit: 1 }))[0]!;
  expect((await view()).unreadable).toEqual(expect.any(String));
  expect((await store.holds({ tenantId, limit: 1 })).map((one) => one.id)).toEqual([id]);
  const books = { tenantId, version: 9n, balanceNanos: 0n, suspended: false, releases: [], budgets: [], spent: [] };
  expect(await store.repair(books)).toEqual({ droppedHolds: 2 });
  expect(await view()).toMatchObject({ pendingHolds: 0, settledHolds: 1 });
});

it('a tenant with an id that the books cannot have is skipped, and does not block the others', async () => {
  const { tenantId } = await owed();
  const { store } = fixture();
  await store.applyBalanceUpdates([
    { tenantId: 'ten_\0', version: 1n, balanceNanos: 0n, suspended: false, releases: [] },
  ]);
  for (const limit of [1, 10]) expect((await store.snapshot({ limit })).map((one) => one.tenantId)).toEqual([tenantId]);
});
