import { newId } from '@tollgate/contracts';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import fs from 'node:fs';
import { DEFAULT_LEASE_MS } from '../admission-store';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';
import { PostgresAdmissionStore } from './postgres-admission-store';

const database = useTestDatabase();
const fixture = useFixture(
  async (options) => new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS, ...options }),
);
beforeEach(() => database.query('TRUNCATE admission.hold'));

/** A request of another tenant. */
async function held(): Promise<{ tenantId: string; id: string }> {
  const f = fixture();
  f.tenantId = newId('ten');
  await f.setBalance(1_000n * TOKEN_NANOS);
  return { tenantId: f.tenantId, id: await f.hold() };
}

const sweep = async () => {
  const events = await fixture().store.sweep({ limit: 100, confirmAfterMs: 60_000 });
  return events.map(({ id }) => id);
};

it.each(['null', '5', '"text"', '[]', '{}', '{"id":"\\u0000"}'])(
  'a sweep hands out all others if a record is %s, and the hold is listed',
  async (record) => {
    const poisoned = await held();
    await fixture().settle(poisoned.id, TOKEN_NANOS);
    const other = await held();
    await fixture().settle(other.id, TOKEN_NANOS);
    await database.query('UPDATE admission.hold SET record = $2 WHERE id = $1', [poisoned.id, record]);
    fixture().nowMs += 120_000;
    expect(await sweep()).toEqual([other.id]);
    const [hold] = await fixture().store.holds({ tenantId: poisoned.tenantId, limit: 1 });
    expect(hold).toMatchObject({ id: poisoned.id, state: 'settled', nanos: TOKEN_NANOS });
    // Reconcile names a hold that has been quiet for so long.
    expect(hold!.quietMs).toBeGreaterThan(3_600_000);
  },
);

it.each([
  ['a draft with a NUL', 'ends, too', `record = '{"model":"\\u0000"}'`],
  ['a last heartbeat before all calendars', 'stays', `progressed_ms = -9000000000000000000`],
])('a sweep ends all other holds if one with nothing delivered has %s, and that one %s', async (_, end, change) => {
  const poisoned = await held();
  await database.query(`UPDATE admission.hold SET ${change} WHERE id = $1`, [poisoned.id]);
  const other = await held();
  await fixture().progress(other.id, 1);
  fixture().nowMs += DEFAULT_LEASE_MS;
  expect(await sweep()).toEqual([other.id]);
  const left = await fixture().store.holds({ tenantId: poisoned.tenantId, limit: 1 });
  expect(left.map(({ id }) => id)).toEqual(end === 'stays' ? [poisoned.id] : []);
});

it.each([
  ['a draft with a NUL', `record = '{"model":"\\u0000"}'`],
  ['a draft with half a surrogate pair', `record = '{"model":"\\ud800"}'`],
  ['no delivered cost', `delivered = '{"promptTokens":1,"completionTokens":1}'`],
  ['a cost that is no number', `delivered = delivered || '{"costNanos":"x"}'`],
  ['a cost beyond the numbers', `delivered = delivered || '{"costNanos":"99999999999999999999"}'`],
  ['a cost below zero', `delivered = delivered || '{"costNanos":"-1"}'`],
  ['tokens that are no numbers', `delivered = delivered || '{"promptTokens":"x"}'`],
])('a sweep ends all other holds if one has %s, and logs that one, which a repair drops', async (_what, change) => {
  const poisoned = await held();
  await fixture().progress(poisoned.id, 1);
  await database.query(`UPDATE admission.hold SET ${change} WHERE id = $1`, [poisoned.id]);
  const other = await held();
  await fixture().progress(other.id, 1);
  fixture().nowMs += DEFAULT_LEASE_MS;
  let lines = '';
  jest.spyOn(fs, 'writeSync').mockImplementation((_, text: unknown) => {
    lines += String(text);
    return Buffer.byteLength(String(text));
  });
  expect(await sweep()).toEqual([other.id]);
  jest.restoreAllMocks();
  expect(JSON.parse(lines)).toMatchObject({ tenantId: poisoned.tenantId, holdId: poisoned.id });
  expect(await fixture().store.holds({ tenantId: poisoned.tenantId, limit: 1 })).toMatchObject([
    { id: poisoned.id, state: 'pending' },
  ]);
  const books = { ...poisoned, version: 9n, balanceNanos: 0n, suspended: false, releases: [], budgets: [], spent: [] };
  expect(await fixture().store.repair(books)).toEqual({ droppedHolds: 1 });
  const [repaired] = await fixture().store.snapshot({ tenantId: poisoned.tenantId, limit: 1 });
  expect(repaired).toMatchObject({ pendingHolds: 0, pendingNanos: 0n });
});
