import { idBound, newId, type Charge } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { EventRanges } from '../audit/event-ranges';
import { RollUpAudit } from '../audit/roll-up-audit';
import { UsageConsumer } from '../consume/usage-consumer';
import { closeMonthsAsOf, useMeteringDatabase } from '../metering-database.fixture';
import { UsageExport } from '../query/usage-export';
import { UsageQueries } from '../query/usage-query';
import { UsageReads } from '../query/usage-reads';
import { ANY_PRICE, TENANT, usageEvent } from '../sample-events.fixture';
import { overdueSeconds } from './overdue';
import { Retention } from './retention';
import { confirmMonth, retiredMonths } from './retired-months';

// Real: PostgreSQL. The tests are in the order of the months' ends; each continues where the one before stopped.
const database = useMeteringDatabase();
const NOW = new Date();
/** The first instant of the month `ago` months before this one. */
const monthMs = (ago: number) => Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - ago);
const nameOf = (ago: number) => new Date(monthMs(ago)).toISOString().slice(0, 7);
const iso = (ms: number) => new Date(ms).toISOString();
const [HOUR_MS, DAY_MS] = [3_600_000, 24 * 3_600_000];
const NOTHING = { closed: [], summed: [], dropped: [], waiting: [] };

/** An event whose id is of one time, and which ended at another. */
const eventAt = (idMs: number, endMs: number, changes: Parameters<typeof usageEvent>[0] = {}) =>
  usageEvent({
    id: idBound('req', idMs).slice(0, 14) + newId('req').slice(14),
    startedAt: iso(endMs - 1_000),
    endedAt: iso(endMs),
    ...changes,
  });
// Clocks that were wrong when the request began.
const ancient = eventAt(0, monthMs(14) + HOUR_MS, { outcome: 'upstream_error', callerRequestId: 'order-1' });
const ancientStraggler = eventAt(Date.UTC(2019, 5), monthMs(12) + 4 * DAY_MS, { callerRequestId: 'order-2' });
const straggler = eventAt(monthMs(14) + DAY_MS, monthMs(13) + 9 * DAY_MS, { outcome: 'client_closed' });
const ordinary = [14, 13, 12, 1].map((ago) => eventAt(monthMs(ago) + 2 * DAY_MS, monthMs(ago) + 2 * DAY_MS + 1_000));
const events = [ancient, ancientStraggler, straggler, ...ordinary];

let consumer: UsageConsumer;
const round = (months: number) => new Retention(database.dataSource, months).round();
const stored = async () =>
  (await database.query<{ id: string }>('SELECT id FROM metering.usage_event')).map(({ id }) => id).sort();
/** Of the oldest month: the month `ago` months before this one if it is kept for 13 months, and none if for 100. */
const expectOldest = async (ago: number) => {
  const dueMs = Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - ago + 13 + 1);
  const seconds = await overdueSeconds(database.dataSource, 13);
  expect(Math.abs(seconds - Math.max(0, (Date.now() - dueMs) / 1_000))).toBeLessThan(60);
  expect(await overdueSeconds(database.dataSource, 100)).toBe(0);
};
const idsOf = (...of: { id: string }[]) => of.map(({ id }) => id).sort();
const callers = () => database.query('SELECT caller_request_id AS id FROM metering.caller_request ORDER BY 1');
const audit = async () => (await new RollUpAudit(database.dataSource).page({})).differences;
const range = { from: iso(monthMs(14)), to: iso(monthMs(0)) };
/** All that is answered by full hours. */
const answers = async () => ({
  usage: await new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
    ...{ tenantId: TENANT, groupBy: ['model', 'hour'] },
    ...range,
  }),
  hours: await new UsageExport(database.dataSource).page({ ...range, step: 'hour' }),
  tenants: await database.query('SELECT * FROM metering.tenant_sum'),
});
/** Billing confirms the month, and a day passes. */
const confirm = async () => {
  for (const month of await retiredMonths(database.dataSource)) {
    const after = month.fromId.slice(0, -1);
    const range = { after, until: month.untilId.slice(0, -1), limit: 100 };
    if (month.confirmed) continue;
    const totals = await new EventRanges(database.dataSource).digest(range);
    expect(await confirmMonth(database.dataSource, { month: month.month, ...totals })).toBe(true);
  }
  await database.query(`UPDATE metering.retired_month SET confirmed_at = now() - interval '25 hours'`);
};
let whole: Awaited<ReturnType<typeof answers>>;

beforeAll(async () => {
  await closeMonthsAsOf(database, NOW);
  consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  expect(await consumer.consume(events)).toMatchObject({ recorded: events.length });
  whole = await answers();
});

describe('a month of usage events', () => {
  it('is overdue from the end of its time until it is dropped, and its stragglers are not', async () => {
    await expectOldest(14);
    const running = new Retention(database.dataSource, 13);
    running.onApplicationBootstrap();
    expect(await metrics.metrics()).toMatch(/^tollgate_metering_month_overdue_seconds \d/m);
    await running.beforeApplicationShutdown();
  });

  it('is retired with the events that have ids from before 2020', async () => {
    expect(await round(13)).toEqual({ ...NOTHING, closed: [nameOf(14)], summed: [nameOf(14)] });
    expect(await retiredMonths(database.dataSource)).toMatchObject([{ events: 4, fromId: '' }]);
    const late = eventAt(Date.UTC(2019, 6), monthMs(1));
    expect(await consumer.consume([late])).toMatchObject({ recorded: 0, repeated: 1 });
    expect(await answers()).toEqual(whole);
  });

  it('leaves its stragglers, which count as before, and no event of it can be added', async () => {
    await confirm();
    await expectOldest(14);
    expect(await round(13)).toEqual({ ...NOTHING, dropped: [nameOf(14)] });
    await expectOldest(13);
    expect(await stored()).toEqual(idsOf(ancientStraggler, straggler, ...ordinary.slice(1)));
    expect(await callers()).toEqual([{ id: 'order-2' }]);
    expect(await answers()).toEqual(whole);
    expect(await audit()).toEqual([]);
    await expect(
      database.query(
        `INSERT INTO metering.usage_event SELECT (jsonb_populate_record(e, $1::jsonb)).*
        FROM metering.usage_event e WHERE id = $2`,
        [{ id: eventAt(monthMs(14) + DAY_MS, monthMs(13)).id }, straggler.id],
      ),
    ).rejects.toThrow(/closed/);
  });

  it('charges a repeat of a straggler as recorded, until the straggler is dropped', async () => {
    await database.query('DELETE FROM metering.outbox');
    expect(await consumer.consume([ancient, straggler])).toMatchObject({ recorded: 0, repeated: 2 });
    const charges = await database.query<{ data: Charge }>('DELETE FROM metering.outbox RETURNING data');
    const late = new Map(charges.map(({ data }) => [data.id, data.late]));
    expect([late.get(ancient.id), late.get(straggler.id)]).toEqual([true, undefined]);
    expect(await answers()).toEqual(whole);
  });

  it('is compared with its rollups together with the stragglers that ended in it', async () => {
    const change = (by: number) =>
      database.query(
        `UPDATE metering.usage_hour SET cost_nanos = cost_nanos + $1 WHERE hour = date_trunc('hour', $2::timestamptz)`,
        [by, straggler.endedAt],
      );
    await change(1);
    const differs = `${nameOf(13)}: the rollups are not the sums of its events: run reconcile`;
    expect(await round(12)).toEqual({ ...NOTHING, closed: [nameOf(13)], waiting: [differs] });
    await change(-1);
    expect(await round(12)).toEqual({ ...NOTHING, summed: [nameOf(13)] });
    expect(await retiredMonths(database.dataSource)).toMatchObject([{ events: 4 }, { events: 1 }]);
  });

  it('is dropped with the stragglers that ended in it', async () => {
    await confirm();
    expect(await round(12)).toEqual({ ...NOTHING, dropped: [nameOf(13)] });
    expect(await stored()).toEqual(idsOf(ancientStraggler, ...ordinary.slice(2)));
    expect(await answers()).toEqual(whole);
    expect(await audit()).toEqual([]);
    expect(await round(11)).toEqual({ ...NOTHING, closed: [nameOf(12)], summed: [nameOf(12)] });
    await confirm();
    expect(await round(11)).toEqual({ ...NOTHING, dropped: [nameOf(12)] });
    expect(await stored()).toEqual(idsOf(ordinary[3]!));
    expect(await round(11)).toEqual(NOTHING);
    expect(await callers()).toEqual([]);
    expect(await answers()).toEqual(whole);
    expect(await audit()).toEqual([]);
  });
});
