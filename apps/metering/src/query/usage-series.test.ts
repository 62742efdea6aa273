import {
  MAX_SERIES_POINTS,
  newId,
  RequestError,
  type Outcome,
  type UsageEvent,
  type UsagePoint,
  type UsageSeriesQuery,
  type UsageStep,
} from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { UsageSeriesQueries } from './usage-series';
import { UsageReads } from './usage-reads';

const database = useMeteringDatabase();
const TENANT = newId('ten');
const KEYS = Array.from({ length: 4 }, () => newId('key'));
const DAY_MS = Date.UTC(2026, 10, 21);
const RANGE = { from: '2026-11-20', to: '2026-11-24' };
const ask = (rest: Partial<UsageSeriesQuery> = {}) =>
  new UsageSeriesQueries(new UsageReads(database.dataSource)).query({
    tenantId: TENANT,
    ...RANGE,
    step: 'day',
    ...rest,
  });

const EVENTS = fc
  .sample(
    fc.record({
      ms: fc.nat(60 * 3_600_000),
      model: fc.constantFrom('a', 'b', 'c'),
      keyId: fc.constantFrom(...KEYS),
      promptTokens: fc.integer({ min: 100, max: 100_000 }),
      outcome: fc.constantFrom<Outcome>('complete', 'complete', 'client_closed', 'upstream_error', 'expired'),
    }),
    { seed: 9, numRuns: 300 },
  )
  .map(({ ms, ...rest }) => usageEvent({ ...rest, tenantId: TENANT, endedAt: new Date(DAY_MS + ms).toISOString() }));

beforeAll(async () => {
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  await consumer.consume(EVENTS.slice(0, 150));
  await consumer.consume(EVENTS.slice(150));
  await consumer.consume([usageEvent({ endedAt: EVENTS[0]!.endedAt })]);
});

/** What the points should be, from the events. */
function expected(
  { step, by, model, keyId, top = 10 }: UsageSeriesQuery,
  from: string,
  to: string,
): [names: string[], points: UsagePoint[]] {
  const inside = EVENTS.filter(
    (event) =>
      event.endedAt >= from &&
      event.endedAt < to &&
      (model === undefined || event.model === model) &&
      (keyId === undefined || event.keyId === keyId),
  );
  const nameOf = (event: UsageEvent) => (by === undefined ? null : by === 'model' ? event.model : event.keyId);
  const costs = new Map<string, bigint>();
  for (const event of inside) {
    const name = nameOf(event);
    if (name !== null) costs.set(name, (costs.get(name) ?? 0n) + BigInt(event.costNanos));
  }
  const ranked = [...costs].sort(([a, x], [b, y]) => (x > y || (x === y && a < b) ? -1 : 1)).map(([name]) => name);
  const names = ranked.slice(0, top);
  const chars = { hour: 13, day: 10, all: 0 }[step];
  const points = new Map<string, UsagePoint>();
  for (const event of inside) {
    const own = nameOf(event);
    const name = own !== null && names.includes(own) ? own : null;
    const at = step === 'all' ? from : `${event.endedAt.slice(0, chars)}${'T00:00:00.000Z'.slice(chars - 10)}`;
    const point = points.get(`${at} ${name ?? '~'}`) ?? {
      at,
      name,
      requests: 0,
      failed: 0,
      clientClosed: 0,
      promptTokens: 0,
      cachedTokens: 0,
      completionTokens: 0,
      costNanos: '0',
    };
    point.requests += 1;
    point.failed += ['upstream_error', 'credit_ended', 'expired'].includes(event.outcome) ? 1 : 0;
    point.clientClosed += event.outcome === 'client_closed' ? 1 : 0;
    point.promptTokens += event.promptTokens;
    point.cachedTokens += event.cachedTokens;
    point.completionTokens += event.completionTokens;
    point.costNanos = String(BigInt(point.costNanos) + BigInt(event.costNanos));
    points.set(`${at} ${name ?? '~'}`, point);
  }
  return [names, [...points].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, point]) => point)];
}

describe('usage over time', () => {
  it('has whole steps: the range is widened to them', async () => {
    const { from, to, points } = await ask({ from: '2026-11-21T10:30:00Z', to: '2026-11-21T11:00:00.001Z' });
    expect([from, to]).toEqual(['2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z']);
    expect(points).toHaveLength(1);
    const hours = await ask({ from: '2026-11-21T10:30:00Z', to: '2026-11-21T11:00:00.001Z', step: 'hour' });
    expect([hours.from, hours.to]).toEqual(['2026-11-21T10:00:00.000Z', '2026-11-21T12:00:00.000Z']);
  });

  it('ends with the year 9999', async () => {
    const { to } = await ask({ from: '9999-12-31T22:10:00Z', to: '9999-12-31T23:10:00Z', step: 'hour' });
    expect(to).toBe('9999-12-31T23:59:59.999Z');
  });

  it('is empty without usage', async () => {
    expect(await ask({ tenantId: newId('ten'), by: 'key' })).toMatchObject({ names: [], points: [] });
    expect(await ask({ tenantId: newId('ten'), step: 'all' })).toMatchObject({ names: [], points: [] });
  });

  it('equals the events in every step, grouping, filter and number of names', async () => {
    const time = fc.integer({ min: -24 * 4, max: 80 * 4 }).map((n) => new Date(DAY_MS + n * 900_000).toISOString());
    await assertRuns(
      fc.asyncProperty(
        fc.tuple(time, time),
        fc.constantFrom<UsageStep>('hour', 'day', 'all'),
        fc.constantFrom(undefined, 'model' as const, 'key' as const),
        fc.constantFrom(undefined, 'a', 'b'),
        fc.constantFrom(undefined, ...KEYS),
        fc.constantFrom(undefined, 1, 2, 200),
        async (times, step, by, model, keyId, top) => {
          const [from, to] = [...times].sort() as [string, string];
          const asked: UsageSeriesQuery = {
            tenantId: TENANT,
            from,
            to,
            step,
            ...(by && { by }),
            ...(model !== undefined && { model }),
            ...(keyId !== undefined && { keyId }),
            ...(top !== undefined && { top }),
          };
          const series = await ask(asked);
          const [names, points] = expected(asked, series.from, series.to);
          expect(series.names).toEqual(names);
          expect(series.points).toEqual(points);
        },
      ),
      { seed: 13, leastRuns: 30, mostRuns: 150, timeBoxMs: 8_000 },
    );
  });

  it.each<[string, Partial<UsageSeriesQuery>]>([
    ['an invalid time', { from: 'yesterday' }],
    ['from after to', { from: '2026-11-25' }],
    ['an unknown step', { step: 'minute' as UsageStep }],
    ['an unknown name', { by: 'constructor' as 'key' }],
    ['no names', { top: 0 }],
    ['too many names', { top: 201 }],
    ['33 days of hours', { step: 'hour', from: '2026-10-01', to: '2026-11-03' }],
    ['401 days', { step: 'all', from: '2025-01-01', to: '2026-02-06' }],
  ])('is refused with %s', async (_, changes) => {
    const refused = ask(changes);
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it('is refused, not cut off, when it has too many points', async () => {
    const tenantId = newId('ten');
    await database.query(
      `INSERT INTO metering.usage_hour
       SELECT $1, timestamptz '2026-01-01Z' + make_interval(hours => n / 40), 'm', 'k' || n % 40, 1, 1, 0, 1, 0, 1
       FROM generate_series(0, ${MAX_SERIES_POINTS + 39}) n`,
      [tenantId],
    );
    const range = { tenantId, step: 'hour', from: '2026-01-01', to: '2026-01-31' } as const;
    await expect(ask({ ...range, by: 'key', top: 200 })).rejects.toMatchObject({
      code: 'invalid_parameter',
      message: expect.stringContaining('lower top'),
    });
    expect((await ask({ ...range, by: 'key', top: 5 })).points.length).toBeLessThanOrEqual(MAX_SERIES_POINTS);
  });
});
