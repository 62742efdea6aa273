import { PostgresAdmissionStore } from '@tollgate/admission';
import { idBound, newId, type UsageEvent } from '@tollgate/contracts';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { openBillingDatabase } from '../../apps/billing/src/database';
import { Charges } from '../../apps/billing/src/reconcile/charges';
import { RetiredMonths } from '../../apps/billing/src/reconcile/retired-months';
import { openMeteringDatabase } from '../../apps/metering/src/database';
import { closeMonthsAsOf } from '../../apps/metering/src/metering-database.fixture';
import { Retention } from '../../apps/metering/src/retain/retention';
import { Books, usageEvent } from './books';

const DEADLINE = { timeoutMs: 20_000 };
const DROPPED = 'the charges of a dropped month are those of its events';
const NOW = new Date();
const monthMs = (ago: number) => Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - ago);

let admission: PostgresAdmissionStore;
let billing: Awaited<ReturnType<typeof openBillingDatabase>>;
let metering: Awaited<ReturnType<typeof openMeteringDatabase>>;
let books: Books;
// Runs before the hook of the database, which needs all connections closed.
afterAll(async () => {
  await books.stop();
  await Promise.all([billing.destroy(), metering.destroy(), admission.close()]);
});
const database = useTestDatabase();
const [tenantId, keyId] = [newId('ten'), newId('key')];
/** Requests of one tenant in two old months and in this one. */
const events: UsageEvent[] = [14, 14, 13, 0].map((ago, index) => {
  const event = usageEvent(tenantId, keyId, 10_001 + index, monthMs(ago) + 1_000);
  return { ...event, id: idBound('req', monthMs(ago)).slice(0, 14) + event.id.slice(14) };
});

beforeAll(async () => {
  admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  await admission.start();
  [billing, metering] = await Promise.all([openBillingDatabase(database.url), openMeteringDatabase(database.url)]);
  await closeMonthsAsOf(database, NOW);
  books = new Books(database, admission);
  await books.start();
  await books.messages.request('billing.credit.add', { tenantId, amountCents: 1_000, source: 'manual', ref: 'first' });
  await books.messages.publish('usage-events', events);
  await eventually(async () => {
    const rows = await database.query('SELECT FROM billing.charge WHERE tenant_id = $1', [tenantId]);
    expect(rows).toHaveLength(events.length);
  }, DEADLINE);
});

const round = () => new Retention(metering, 13).round();
const confirm = () => new RetiredMonths(books.messages, new Charges(billing)).confirm();
const answers = async () => ({
  summary: await books.messages.request('billing.summary', { tenantId }),
  places: await Promise.all(events.map(({ id }) => books.messages.request('billing.request.entry', { requestId: id }))),
});
const name = new Date(monthMs(14)).toISOString().slice(0, 7);

it('a month with an event that billing lacks is not confirmed', async () => {
  expect(await round()).toMatchObject({ closed: [name], summed: [name], dropped: [] });
  const [{ row } = { row: '' }] = await database.query<{ row: string }>(
    'SELECT row_to_json(c)::text AS row FROM billing.charge c WHERE id = $1',
    [events[0]!.id],
  );
  await books.spoil('DELETE FROM billing.charge WHERE id = $1', [events[0]!.id]);
  expect(await confirm()).toEqual([]);
  await books.spoil('INSERT INTO billing.charge SELECT * FROM json_populate_record(NULL::billing.charge, $1::json)', [
    row,
  ]);
  expect(await confirm()).toEqual([name]);
  expect(await confirm()).toEqual([]);
});

it('reconcile finds no difference before and after the month is dropped, and billing still knows its requests', async () => {
  expect(await books.reconcile()).toEqual([]);
  const before = await answers();
  await database.query(`UPDATE metering.retired_month SET confirmed_at = now() - interval '25 hours'`);
  expect(await round()).toMatchObject({ dropped: [name] });
  expect(await database.query('SELECT id FROM metering.usage_event ORDER BY id')).toEqual(
    events.slice(2).map(({ id }) => ({ id })),
  );
  expect(await books.reconcile()).toEqual([]);
  expect(await answers()).toEqual(before);
});

it('a repeat of a dropped event changes nothing; one that was never charged is quarantined by billing', async () => {
  const before = await answers();
  const unknown = { ...events[0]!, id: idBound('req', monthMs(14)).slice(0, 14) + newId('req').slice(14) };
  await books.messages.publish('usage-events', [events[0]!, unknown]);
  await eventually(async () => {
    const rejected = await database.query<{ reason: string; id: string }>(
      `SELECT reason, data::json ->> 'id' AS id FROM billing.rejected_charge`,
    );
    expect(rejected).toEqual([
      { id: unknown.id, reason: 'its month is closed for usage, and this id was never charged' },
    ]);
  }, DEADLINE);
  expect(await answers()).toEqual(before);
  expect(await books.reconcile()).toEqual([]);
});

it('reconcile names a dropped month of which a charge has another key or end', async () => {
  for (const [change, back] of [
    [`key_id = key_id || '_'`, `key_id = rtrim(key_id, '_')`],
    [`ended_at = ended_at + interval '1 microsecond'`, `ended_at = ended_at - interval '1 microsecond'`],
  ]) {
    await books.spoil(`UPDATE billing.charge SET ${change} WHERE id = $1`, [events[1]!.id]);
    const checks = (await books.reconcile()).map(({ check }) => check);
    expect([change, checks]).toEqual([change, expect.arrayContaining([DROPPED])]);
    await books.spoil(`UPDATE billing.charge SET ${back} WHERE id = $1`, [events[1]!.id]);
  }
  expect(await books.reconcile()).toEqual([]);
});

it('reconcile names a dropped month whose charges are no longer those of its events', async () => {
  await books.spoil('UPDATE billing.charge SET cost_nanos = cost_nanos + 1 WHERE id = $1', [events[1]!.id]);
  const found = await books.reconcile();
  expect(found).toContainEqual(
    expect.objectContaining({
      check: DROPPED,
      expected: expect.stringContaining(`${name}: 2 of `),
    }),
  );
});
