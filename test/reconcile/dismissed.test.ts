import { PostgresAdmissionStore } from '@tollgate/admission';
import { newId, type UsageEvent } from '@tollgate/contracts';
import { eventually, PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { Sweeper } from '../../apps/metering/src/sweep/sweeper';
import { admitRequest, Books, usageEvent } from './books';

const DEADLINE = { timeoutMs: 20_000 };

let admission: PostgresAdmissionStore;
let books: Books;
let sweeper: Sweeper;
// Runs before the hook of the database, which needs all connections closed.
afterAll(async () => {
  await books.stop();
  await admission.close();
});
const database = useTestDatabase();
const [tenantId, keyId] = [newId('ten'), newId('key')];
/** Served, but its cost does not follow from its tokens. */
const event = wrongCost(usageEvent(tenantId, keyId, 10_001));

beforeAll(async () => {
  admission = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  await admission.start();
  books = new Books(database, admission);
  await books.start();
  sweeper = new Sweeper(admission, books.messages, { sweepIntervalMs: 1_000, confirmAfterMs: 0 });
  await books.messages.request('billing.credit.add', { tenantId, amountCents: 1_000, source: 'manual', ref: 'first' });
  await eventually(async () => expect((await credit()).balance).toBeGreaterThan(0n));
  await eventually(async () => expect(await admission.admit([admitRequest(event)])).toMatchObject([{ kind: 'held' }]));
  await admission.settle([{ event }]);
  await books.publishRefused(event);
});

function wrongCost(right: UsageEvent): UsageEvent {
  return { ...right, costNanos: String(BigInt(right.costNanos) - 1n) };
}

async function credit() {
  const [snapshot] = await admission.snapshot({ tenantId, limit: 1 });
  const { balanceNanos = 0n, settledNanos = 0n, settledHolds = 0 } = snapshot ?? {};
  return { balance: balanceNanos, available: balanceNanos - settledNanos, settledHolds };
}

async function booked() {
  const ids = async (table: string) => (await database.query(`SELECT FROM ${table} WHERE id = $1`, [event.id])).length;
  return {
    ...{ events: await ids('metering.usage_event'), charges: await ids('billing.charge') },
    rejected: await database.query('SELECT times::int FROM metering.rejected_event'),
    refused: await database.query('SELECT reason FROM billing.rejected_charge'),
  };
}

/** All that metering and billing have to publish is published and handled. */
const rest = () =>
  eventually(
    async () =>
      expect(await database.query('SELECT FROM metering.outbox UNION ALL SELECT FROM billing.outbox')).toEqual([]),
    DEADLINE,
  );

it('a quarantined event keeps its hold, however often the sweeper sends it', async () => {
  const { balance, available } = await credit();
  expect(balance - available).toBe(BigInt(event.costNanos));
  expect(await sweeper.sweep()).toBe(1);
  await eventually(async () => expect((await booked()).rejected).toEqual([{ times: 2 }]), DEADLINE);
  expect(await credit()).toEqual({ balance, available, settledHolds: 1 });
  expect(await books.reconcile()).toMatchObject([{ check: 'no usage event is quarantined', ids: [event.id] }]);
});

it('its dismissal ends the hold without a charge, and reconcile finds nothing', async () => {
  const { balance } = await credit();
  await database.query('UPDATE metering.rejected_event SET dismissed_at = now() WHERE event_id = $1', [event.id]);
  // Two sweepers at once, of which one may die.
  await Promise.all([sweeper.sweep(), sweeper.sweep()]);
  await eventually(
    async () => expect(await credit()).toEqual({ balance, available: balance, settledHolds: 0 }),
    DEADLINE,
  );
  expect(await sweeper.sweep()).toBe(0);
  expect(await books.reconcile()).toEqual([]);
});

it('a repeat of it is not booked, even with the right cost', async () => {
  const { balance } = await credit();
  const right = { ...event, costNanos: String(BigInt(event.costNanos) + 1n) };
  const after = usageEvent(tenantId, keyId, 1);
  await books.messages.publish('usage-events', [event, right, after]);
  await eventually(
    async () => expect(await database.query('SELECT FROM billing.charge WHERE id = $1', [after.id])).toHaveLength(1),
    DEADLINE,
  );
  await rest();
  expect(await booked()).toEqual({ events: 0, charges: 0, rejected: [{ times: 2 }], refused: [] });
  await eventually(
    async () =>
      expect(await credit()).toEqual({
        ...{ balance: balance - BigInt(after.costNanos), settledHolds: 0 },
        available: balance - BigInt(after.costNanos),
      }),
    DEADLINE,
  );
  expect(await books.reconcile()).toEqual([]);
});
