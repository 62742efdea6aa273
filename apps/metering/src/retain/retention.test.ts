import { newId, idBound, type Charge } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import { UsageConsumer } from '../consume/usage-consumer';
import { openMeteringDatabase } from '../database';
import { closeMonthsAsOf, useMeteringDatabase } from '../metering-database.fixture';
import { EventRanges } from '../audit/event-ranges';
import { explainRequests } from '../query/explain';
import { RollUpAudit } from '../audit/roll-up-audit';
import { RequestsList } from '../query/requests-list';
import { UsageExport } from '../query/usage-export';
import { UsageQueries } from '../query/usage-query';
import { UsageSeriesQueries } from '../query/usage-series';
import { UsageReads } from '../query/usage-reads';
import { ANY_PRICE, KEY, TENANT, usageEvent } from '../sample-events.fixture';
import { quarantine } from '../record/rejected';
import { Retention } from './retention';
import { UsageDays } from '../record/usage-days';
import { confirmMonth, retiredMonths } from './retired-months';

// Real: PostgreSQL. The tests are in the order of a month's end; each continues where the one before stopped.
const database = useMeteringDatabase();
const NOW = new Date();
/** The first instant of the month `ago` months before this one. */
const monthMs = (ago: number) => Date.UTC(NOW.getUTCFullYear(), NOW.getUTCMonth() - ago);
const nameOf = (ago: number) => new Date(monthMs(ago)).toISOString().slice(0, 7);
const iso = (ms: number) => new Date(ms).toISOString();
const [OLD, MINUTE_MS, HOUR_MS] = [14, 60_000, 3_600_000];
const OLD_MS = monthMs(OLD);
const NEXT_MS = monthMs(OLD - 1);

/** An event that began at one time and ended at another. */
const eventAt = (startMs: number, endMs = startMs + 1_000, changes: Parameters<typeof usageEvent>[0] = {}) =>
  usageEvent({
    id: idBound('req', startMs).slice(0, 14) + newId('req').slice(14),
    startedAt: iso(startMs),
    endedAt: iso(endMs),
    ...changes,
  });
const events = [
  eventAt(OLD_MS, undefined, { callerRequestId: 'order-1' }),
  eventAt(OLD_MS + HOUR_MS, undefined, { outcome: 'client_closed' }),
  eventAt(OLD_MS + HOUR_MS + MINUTE_MS, undefined, { outcome: 'upstream_error' }),
  // Ends in the next month.
  eventAt(NEXT_MS - MINUTE_MS, NEXT_MS + 30 * MINUTE_MS),
  // Its clock was set back by days, so its id is of the next month.
  eventAt(NEXT_MS + 70 * HOUR_MS, NEXT_MS - 2 * HOUR_MS, { outcome: 'upstream_error' }),
  eventAt(NEXT_MS + 10 * MINUTE_MS, undefined, { outcome: 'expired', callerRequestId: 'order-2' }),
  eventAt(monthMs(1)),
];
const dropped = events.slice(0, 4);

let consumer: UsageConsumer;
const retention = (months = 13) => new Retention(database.dataSource, months);
/** The rounds of three processes at once. */
const together = async (months = 13) => {
  const others = await Promise.all([1, 2].map(() => openMeteringDatabase(database.url)));
  try {
    return await Promise.all([database.dataSource, ...others].map((source) => new Retention(source, months).round()));
  } finally {
    await Promise.all(others.map((other) => other.destroy()));
  }
};
/** A process that dies between a step and its commit. Returns what the step had said. */
const killedAfter = async (step: string): Promise<string> => {
  const client = new Client({ connectionString: database.url });
  const died = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  await client.query('BEGIN; SET LOCAL search_path TO metering');
  const { rows } = await client.query<{ said: string; pid: number }>(
    `SELECT ${step}::text AS said, pg_backend_pid() AS pid`,
  );
  const [{ said, pid }] = rows as [{ said: string; pid: number }];
  await database.query('SELECT pg_terminate_backend($1)', [pid]);
  await died;
  await eventually(async () =>
    expect(await database.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).toEqual([]),
  );
  return said;
};
const firstDay = `${nameOf(OLD)}-01`;
const NOTHING = { closed: [], summed: [], dropped: [], waiting: [] };
const count = async (table: string) =>
  Number((await database.query<{ n: string }>(`SELECT count(*) AS n FROM metering.${table}`))[0]!.n);
const published = async (): Promise<Charge[]> =>
  (await database.query<{ data: Charge }>('DELETE FROM metering.outbox RETURNING data')).map(({ data }) => data);
/** All that is answered from the time of the old month. */
const answers = async () => {
  const [from, to] = [iso(OLD_MS), iso(NEXT_MS + 2 * HOUR_MS)];
  const usage = (groupBy: ('model' | 'key' | 'hour' | 'day')[]) =>
    new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
      tenantId: TENANT,
      from,
      to,
      groupBy,
    });
  const series = new UsageSeriesQueries(new UsageReads(database.dataSource));
  return {
    usage: [await usage([]), await usage(['model', 'hour']), await usage(['key', 'day'])],
    series: await series.query({ tenantId: TENANT, from, to, step: 'all', by: 'model' }),
    hours: await new UsageExport(database.dataSource).page({ from, to, step: 'hour' }),
    sums: await database.query('SELECT * FROM metering.usage_hour ORDER BY hour, model'),
    tenants: await database.query('SELECT * FROM metering.tenant_sum'),
  };
};
const audit = async () => (await new RollUpAudit(database.dataSource).page({})).differences;
let whole: Awaited<ReturnType<typeof answers>>;

beforeAll(async () => {
  await closeMonthsAsOf(database, NOW);
  consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  await consumer.consume(events);
  whole = await answers();
  await published();
});

describe('a month of usage events', () => {
  it('is not closed before its time, nor earlier than after three months', async () => {
    expect(await retention(14).round()).toEqual(NOTHING);
    await expect(database.query('SELECT metering.close_month(2)')).rejects.toThrow(/at least 3 months/);
    expect(await count('retired_month')).toBe(0);
  });

  it('stays open and takes events when the process that closes it is killed', async () => {
    expect(await killedAfter('close_month(13)')).toBe(firstDay);
    expect(await count('retired_month')).toBe(0);
    const event = eventAt(OLD_MS + 9 * HOUR_MS);
    expect(await consumer.consume([event])).toMatchObject({ recorded: 1 });
    expect((await published()).map(({ id, late }) => [id, late])).toEqual([[event.id, undefined]]);
    for (const list of [events, dropped]) list.splice(3, 0, event);
    whole = await answers();
  });

  it('is closed once by several processes, and waits while a quarantined event or a wrong rollup is open', async () => {
    const open = eventAt(OLD_MS);
    await transaction(database.dataSource, (tx) => quarantine(tx, [{ value: open, reason: 'test', wrong: 'cost' }]));
    const quarantined = `${nameOf(OLD)}: a quarantined event of this month is open`;
    const rounds = await together();
    expect(rounds.flatMap(({ closed }) => closed)).toEqual([nameOf(OLD)]);
    expect(rounds.flatMap(({ summed, dropped }) => [...summed, ...dropped])).toEqual([]);
    expect(await retention().round()).toEqual({ ...NOTHING, waiting: [quarantined] });
    await database.query('UPDATE metering.rejected_event SET dismissed_at = now()');

    const change = (by: number) =>
      database.query('UPDATE metering.usage_hour SET requests = requests + $1 WHERE hour = $2', [by, iso(OLD_MS)]);
    await change(1);
    const differs = `${nameOf(OLD)}: the rollups are not the sums of its events: run reconcile`;
    expect(await retention().round()).toEqual({ ...NOTHING, waiting: [differs] });
    await change(-1);
    expect(await killedAfter('sum_month()')).toBe(`(${firstDay},"")`);
    expect(await retiredMonths(database.dataSource)).toEqual([]);
    expect((await together()).flatMap(({ summed }) => summed)).toEqual([nameOf(OLD)]);
  });

  it('takes no new event once it is closed, and charges its own again as recorded', async () => {
    const [known, unknown] = [events[0]!, eventAt(OLD_MS + 5 * HOUR_MS)];
    expect(await consumer.consume([known, unknown])).toMatchObject({ recorded: 0, repeated: 2 });
    const charges = await published();
    expect(charges.map(({ id, late }) => [id, late])).toEqual([
      [known.id, undefined],
      [unknown.id, true],
    ]);
    expect(await answers()).toEqual(whole);
    expect(await count('usage_event')).toBe(events.length);
    await expect(
      database.query(
        `INSERT INTO metering.usage_event SELECT (jsonb_populate_record(e, $1::jsonb)).*
        FROM metering.usage_event e WHERE id = $2`,
        [{ id: unknown.id }, known.id],
      ),
    ).rejects.toThrow(/closed/);
  });

  it('is dropped only when billing has the same totals, and no earlier than a day after', async () => {
    const { fromId, untilId, confirmed, ...totals } = (await retiredMonths(database.dataSource))[0]!;
    expect({ fromId, untilId, confirmed }).toEqual({ fromId: '', untilId: idBound('req', NEXT_MS), confirmed: false });
    const digest = await new EventRanges(database.dataSource).digest({
      after: '',
      until: untilId,
      limit: 100,
    });
    expect({ month: nameOf(OLD), ...digest }).toMatchObject({ ...totals, end: null });
    for (const wrong of [{ events: 3 }, { costNanos: '1' }, { digest: '1' }, { month: nameOf(1) }])
      expect(await confirmMonth(database.dataSource, { ...totals, ...wrong })).toBe(false);
    expect(await retention().round()).toEqual(NOTHING);
    expect(await confirmMonth(database.dataSource, totals)).toBe(true);
    expect(await retention().round()).toEqual(NOTHING);
    expect(await count('usage_event')).toBe(events.length);
  });

  it('is dropped once by several processes at once, one of them killed, and leaves every sum as it was', async () => {
    await database.query(`UPDATE metering.retired_month SET confirmed_at = now() - interval '25 hours'`);
    // Quarantined since: one that was recorded, and one that nobody has looked at.
    const [known, unknown] = [dropped[0]!, eventAt(OLD_MS)];
    const since = [known, unknown].map((value) => ({ value, reason: 'since', wrong: 'cost' as const }));
    await transaction(database.dataSource, (tx) => quarantine(tx, since));
    expect(await killedAfter('drop_month()')).toBe(firstDay);
    expect([await count('usage_event'), await count('dropped_unfinished')]).toEqual([events.length, 0]);
    expect(await answers()).toEqual(whole);
    expect((await together()).flatMap((round) => round.dropped)).toEqual([nameOf(OLD)]);
    expect(await count('usage_event')).toBe(events.length - dropped.length);
    expect(await database.query('SELECT caller_request_id FROM metering.caller_request')).toEqual([
      { caller_request_id: 'order-2' },
    ]);
    expect(await answers()).toEqual(whole);
    expect(await audit()).toEqual([]);
    expect(await retention().round()).toEqual(NOTHING);
    expect(await database.query('SELECT event_id FROM metering.rejected_event WHERE dismissed_at IS NULL')).toEqual([
      { event_id: unknown.id },
    ]);
  });

  it('is not counted again by a repeat of its events, which only asks for the release of their holds', async () => {
    expect(await consumer.consume(dropped)).toMatchObject({ recorded: 0, repeated: dropped.length });
    const charges = await published();
    expect(charges.map(({ id, costNanos, late }) => ({ id, costNanos, late }))).toEqual(
      dropped.map(({ id, costNanos }) => ({ id, costNanos, late: true })),
    );
    expect(await answers()).toEqual(whole);
    await expect(database.query('SELECT metering.add_month($1, $2)', nameOf(OLD).split('-'))).rejects.toThrow(
      /closed for events/,
    );
  });

  it('is not counted again by a consumer that did not look at the bound, because the database refuses it', async () => {
    const clock = jest.spyOn(Date, 'now').mockReturnValue(OLD_MS + 2 * HOUR_MS);
    try {
      const unaware = new UsageConsumer(database.dataSource, ANY_PRICE);
      expect(await unaware.consume(dropped.slice(0, 2))).toMatchObject({ recorded: 0, repeated: 2 });
    } finally {
      clock.mockRestore();
    }
    expect((await published()).map(({ late }) => late)).toEqual([true, true]);
    expect(await answers()).toEqual(whole);
  });

  it('is folded after its end as before it', async () => {
    const days = new UsageDays(database.dataSource);
    expect(await days.fold(NEXT_MS - 12 * HOUR_MS)).toBeGreaterThan(0);
    expect(await answers()).toEqual(whole);
    expect(await days.fold(NEXT_MS + 6 * HOUR_MS)).toBeGreaterThan(0);
    expect(await answers()).toEqual(whole);
    expect(await audit()).toEqual([]);
  });

  it('is known by full hours afterwards: other questions are refused, with the time of the bound', async () => {
    const bound = new RegExp(`kept from ${iso(NEXT_MS + HOUR_MS)} on`);
    const usage = (from: number, groupBy: 'backend'[] = [], to = NEXT_MS + 2 * HOUR_MS) =>
      new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
        tenantId: TENANT,
        from: iso(from),
        to: iso(to),
        groupBy,
      });
    await expect(usage(OLD_MS + MINUTE_MS)).rejects.toThrow(bound);
    await expect(usage(OLD_MS, [], NEXT_MS + 30 * MINUTE_MS)).rejects.toThrow(bound);
    await expect(usage(NEXT_MS, ['backend'])).rejects.toThrow(bound);
    expect((await usage(NEXT_MS + HOUR_MS + MINUTE_MS)).totals.requests).toBe(0);
    const exported = (from: number) =>
      new UsageExport(database.dataSource).page({ from: iso(from), to: iso(NEXT_MS + 2 * HOUR_MS), step: 'request' });
    await expect(exported(NEXT_MS)).rejects.toThrow(bound);
    expect((await exported(NEXT_MS + HOUR_MS)).data).toEqual([]);
    const requests = new RequestsList(database.dataSource);
    const before = { from: iso(OLD_MS), to: iso(NEXT_MS - 3 * HOUR_MS) };
    await expect(requests.page({ tenantId: TENANT, ...before })).rejects.toThrow(bound);
    expect(await requests.page({ tenantId: TENANT, to: iso(NEXT_MS + 3 * HOUR_MS), model: 'other' })).toEqual({
      data: [],
      nextCursor: null,
    });
    const list = await requests.page({ tenantId: TENANT, keyId: KEY });
    expect(list.data.map(({ id }) => id)).toEqual([-1, -2, -3].map((place) => events.at(place)!.id));
    expect(await explainRequests(database.dataSource, { name: dropped[0]!.id })).toEqual({ served: [], refused: [] });
  });
});
