import { newId, type Outcome, type UsageEvent, type UsageQuery, type UsageSeriesQuery } from '@tollgate/contracts';
import { transaction } from '@tollgate/postgres';
import { eventually } from '@tollgate/testing';
import fc from 'fast-check';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { RequestsList } from '../query/requests-list';
import { RollUpAudit } from '../audit/roll-up-audit';
import { UsageQueries } from '../query/usage-query';
import { UsageSeriesQueries } from '../query/usage-series';
import { UsageReads } from '../query/usage-reads';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { addToSums, sumUp } from './roll-up';
import { UsageDays } from './usage-days';

const database = useMeteringDatabase();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TODAY_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS;
/** All of it is late when it is recorded. */
const [FIRST_MS, DAYS] = [TODAY_MS - 20 * DAY_MS, 6];
const TENANTS = [newId('ten'), newId('ten')];
const KEYS = Array.from({ length: 3 }, () => newId('key'));
const iso = (ms: number) => new Date(ms).toISOString();

const eventOf = ({ ms, ...rest }: { ms: number } & Partial<UsageEvent>) =>
  usageEvent({ ...rest, endedAt: iso(FIRST_MS + ms) });
const EVENTS = fc
  .sample(
    fc.record({
      ms: fc.nat(DAYS * DAY_MS - 1),
      tenantId: fc.constantFrom(...TENANTS),
      model: fc.constantFrom('a', 'b'),
      keyId: fc.constantFrom(...KEYS),
      promptTokens: fc.integer({ min: 100, max: 100_000 }),
      reasoningTokens: fc.nat(40),
      estimated: fc.boolean(),
      outcome: fc.constantFrom<Outcome>('complete', 'complete', 'client_closed', 'expired'),
    }),
    { seed: 3, numRuns: 300 },
  )
  .map(eventOf);

const days = () => new UsageDays(database.dataSource);
/** The hours before day `n` of the events (2.5: and noon) ended long enough ago. */
const foldUntil = (n: number) => days().fold(FIRST_MS + n * DAY_MS + 3 * HOUR_MS);
const consume = (events: readonly UsageEvent[]) => new UsageConsumer(database.dataSource, ANY_PRICE).consume(events);
/** The marks of days and of hours, in days of the events. */
const folded = async () => {
  const [row] = await database.query<{ until: Date; hours_until: Date }>('SELECT * FROM metering.usage_folded');
  return [row!.until, row!.hours_until].map((at) => (at.getTime() - FIRST_MS) / DAY_MS);
};
const storedDays = async () =>
  Number((await database.query('SELECT sum(requests) AS n FROM metering.usage_day'))[0]!.n ?? 0);

async function differences() {
  const { differences: found, nextCursor } = await new RollUpAudit(database.dataSource).page({});
  expect(nextCursor).toBeNull();
  return found.map(({ check, expected, actual }) => ({ check, expected, actual }));
}

/** Answers by day and in sum, of ranges that begin and end in whole days and in parts of hours. */
async function answers() {
  const ranges = [
    [0, DAYS * DAY_MS],
    [DAY_MS, 3 * DAY_MS],
    [DAY_MS, 2.5 * DAY_MS],
    [DAY_MS, 2.5 * DAY_MS - HOUR_MS],
    [DAY_MS / 2, 4 * DAY_MS - 90 * 60_000 - 1],
    [2 * DAY_MS + 1, 2 * DAY_MS + HOUR_MS],
    [-30 * DAY_MS, 30 * DAY_MS],
  ].map(([from, to]) => ({ from: iso(FIRST_MS + from!), to: iso(FIRST_MS + to!) }));
  const queries: Omit<UsageQuery, 'tenantId' | 'from' | 'to'>[] = [
    { groupBy: ['day', 'model'] },
    { groupBy: ['key'], model: 'a' },
    { groupBy: ['day', 'key'] },
    { groupBy: [], keyId: KEYS[0]! },
    { groupBy: ['hour'] },
    { groupBy: ['day'], model: 'b' },
    { groupBy: ['hour', 'key'] },
    { groupBy: [] },
  ];
  const series: Omit<UsageSeriesQuery, 'tenantId' | 'from' | 'to'>[] = [
    { step: 'day', by: 'key', top: 2 },
    { step: 'day', by: 'key', top: 1, model: 'a' },
    { step: 'all', by: 'key', top: 2 },
    { step: 'day', model: 'b', keyId: KEYS[1]! },
    { step: 'all', by: 'model' },
    { step: 'hour' },
    { step: 'hour', by: 'model', model: 'a' },
    { step: 'hour', by: 'key', top: 1 },
    { step: 'hour', by: 'key', top: 2, model: 'b' },
    { step: 'hour', by: 'key', keyId: KEYS[2]! },
  ];
  const requests = new RequestsList(database.dataSource, { hours: 1_000, ms: 60_000 });
  const all: unknown[] = [];
  for (const tenantId of TENANTS) {
    for (const search of [
      { model: 'a' },
      { outcome: 'complete' as const },
      { outcome: 'expired' as const, model: 'b' },
    ])
      all.push(await requests.page({ tenantId, limit: 200, ...search }));
    for (const range of ranges) {
      for (const query of queries)
        all.push(
          await new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
            ...query,
            ...range,
            tenantId,
          }),
        );
      for (const one of series)
        if (Date.parse(range.to) - Date.parse(range.from) < 32 * DAY_MS || one.step !== 'hour')
          all.push(
            await new UsageSeriesQueries(new UsageReads(database.dataSource)).query({ ...one, ...range, tenantId }),
          );
    }
  }
  return all;
}

it('every answer stays the same while days are folded, and reconcile finds nothing', async () => {
  expect(await foldUntil(DAYS)).toBe(0);
  await consume(EVENTS);
  expect(await storedDays()).toBe(0);
  const before = await answers();
  for (const n of [1, 1.125, 2.5, DAYS]) {
    await foldUntil(n);
    expect(await folded()).toEqual([Math.floor(n), n]);
    expect(await answers()).toEqual(before);
    expect(await differences()).toEqual([]);
  }
  expect(await storedDays()).toBe(EVENTS.length);
});

it('the folded sums equal the sums of the events, including the failed ones', async () => {
  const sumOf = (events: readonly UsageEvent[]) => ({
    requests: events.length,
    failed: events.filter(({ outcome }) => outcome === 'expired').length,
    clientClosed: events.filter(({ outcome }) => outcome === 'client_closed').length,
    promptTokens: events.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    reasoningTokens: events.reduce((sum, { reasoningTokens = 0 }) => sum + reasoningTokens, 0),
    costNanos: String(events.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n)),
  });
  const range = { from: iso(FIRST_MS), to: iso(FIRST_MS + DAYS * DAY_MS) };
  for (const tenantId of TENANTS) {
    const own = EVENTS.filter((event) => event.tenantId === tenantId);
    const groups = async (...groupBy: UsageQuery['groupBy']) =>
      (
        await new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
          tenantId,
          ...range,
          groupBy,
        })
      ).groups;
    for (const group of await groups('key'))
      expect(group).toMatchObject(sumOf(own.filter(({ keyId }) => keyId === group.key)));
    for (const group of await groups('day', 'model', 'key'))
      expect(group).toMatchObject(
        sumOf(
          own.filter(
            ({ endedAt, model, keyId }) =>
              endedAt.startsWith(group.day!) && model === group.model && keyId === group.key,
          ),
        ),
      );
    for (const group of await groups('hour', 'model'))
      expect(group).toMatchObject(
        sumOf(
          own.filter(({ endedAt, model }) => endedAt.startsWith(group.hour!.slice(0, 13)) && model === group.model),
        ),
      );
  }
});

it('an hour and a day are folded once, and not before they ended three hours ago', async () => {
  expect(await foldUntil(DAYS)).toBe(0);
  const [dueMs, nextMs] = [FIRST_MS + DAYS * DAY_MS + 4 * HOUR_MS, FIRST_MS + (DAYS + 1) * DAY_MS + 3 * HOUR_MS];
  expect(await days().fold(dueMs - 1)).toBe(0);
  expect(await days().fold(dueMs)).toBe(1);
  expect(await folded()).toEqual([DAYS, DAYS + 1 / 24]);
  await days().fold(nextMs - 1);
  expect(await folded()).toEqual([DAYS, DAYS + 23 / 24]);
  expect(await days().fold(nextMs)).toBe(2);
  expect(await folded()).toEqual([DAYS + 1, DAYS + 1]);
  await foldUntil(DAYS + 1.5);
});

it('a late event is added to its sums, whether they are folded or not', async () => {
  const [tenantId, keyId] = [newId('ten'), KEYS[0]!];
  const late = [FIRST_MS - 3 * DAY_MS, FIRST_MS, FIRST_MS, FIRST_MS + (DAYS + 2) * DAY_MS].map((ms, i) =>
    usageEvent({ tenantId, keyId, endedAt: iso(ms + HOUR_MS), outcome: i === 1 ? 'client_closed' : 'expired' }),
  );
  const before = await storedDays();
  await consume(late.slice(0, 2));
  await consume(late.slice(2));
  // The last one is of a day that is not folded yet.
  expect(await storedDays()).toBe(before + 3);
  expect(await differences()).toEqual([]);
  const { groups } = await new UsageQueries(database.dataSource, new UsageReads(database.dataSource)).query({
    tenantId,
    from: iso(FIRST_MS - 10 * DAY_MS),
    to: iso(TODAY_MS),
    groupBy: ['day'],
  });
  expect(groups.map(({ requests, failed, clientClosed }) => [requests, failed, clientClosed])).toEqual([
    [1, 1, 0],
    [2, 1, 1],
    [1, 1, 0],
  ]);
});

it('hours that are being folded wait for late events that are being recorded', async () => {
  const untilMs = FIRST_MS + Math.round((await folded())[1]! * DAY_MS);
  const event = usageEvent({ endedAt: iso(untilMs + 1) });
  let fold: Promise<number> | undefined;
  await transaction(database.dataSource, async (tx) => {
    await addToSums(tx, sumUp([{ event, chargeNanos: BigInt(event.costNanos), overrunNanos: 0n }]));
    fold = days().fold(untilMs + 4 * HOUR_MS);
    await eventually(async () => {
      const waiting = await database.query(
        `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%usage_folded%'
           AND datname = current_database()`,
      );
      expect(waiting).toHaveLength(1);
    });
  });
  expect(await fold).toBe(1);
  const hour = iso(untilMs);
  const found = await database.query('SELECT requests FROM metering.model_hour WHERE hour = $1', [hour]);
  expect(found).toEqual([{ requests: '1' }]);
});

it('a process whose clock is a day ahead folds no day that has not ended', async () => {
  await consume([usageEvent({ endedAt: iso(TODAY_MS - 2 * DAY_MS) })]);
  const ahead = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * DAY_MS);
  await days().fold();
  ahead.mockRestore();
  const marks = (await folded()).map((mark) => FIRST_MS + mark * DAY_MS);
  expect(marks[0]).toBeLessThanOrEqual(TODAY_MS);
  expect(marks[1]).toBeLessThanOrEqual(Date.now() - 3 * HOUR_MS);
  await consume([usageEvent({ endedAt: iso(Date.now()) })]);
  // The test above has written an hour without events.
  const ofFolded = (await differences()).filter(({ check }) => !check.startsWith('a roll-up of an hour '));
  expect(ofFolded).toEqual([]);
});

it('reconcile names sums of days, keys and models that are not those of their hours', async () => {
  await database.query('UPDATE metering.usage_day SET requests = requests + 1 WHERE tenant_id = $1 AND day = $2', [
    TENANTS[0],
    iso(FIRST_MS),
  ]);
  await database.query('UPDATE metering.key_day SET failed = failed + 1 WHERE tenant_id = $1 AND day = $2', [
    TENANTS[0],
    iso(FIRST_MS),
  ]);
  await database.query('DELETE FROM metering.model_hour WHERE tenant_id = $1 AND model = $2', [TENANTS[1], 'a']);
  const found = await differences();
  const checks = found.map(({ check }) => check);
  for (const name of ['a day', 'a key', 'a model'])
    expect(checks).toContain(`a roll-up of ${name} is the sum of its hours`);
  expect(found.filter(({ actual }) => actual === 'nothing').every(({ check }) => check.includes('of a model'))).toBe(
    true,
  );
});
