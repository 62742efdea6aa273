import { newId, RequestError, type UsageEvent, type UsageGroup, type UsageQuery } from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { UsageDays } from '../record/usage-days';
import { ANY_PRICE, KEY, TENANT, usageEvent } from '../sample-events.fixture';
import { MAX_GROUPS, UsageQueries } from './usage-query';
import { UsageReads } from './usage-reads';

const database = useMeteringDatabase();
const OTHER_KEY = newId('key');
let queries: UsageQueries;

const ask = (from: string, to: string, rest: Partial<UsageQuery> = {}) =>
  queries.query({ tenantId: TENANT, from, to, groupBy: [], ...rest });
const requests = async (from: string, to: string, rest: Partial<UsageQuery> = {}) =>
  (await ask(from, to, rest)).totals.requests;

/** Costs this amount per request, whatever its tokens. */
const costing = (nanos: number, changes: Partial<UsageEvent>) =>
  usageEvent({
    price: {
      version: 'v',
      inputFemtos: '0',
      cachedInputFemtos: '0',
      outputFemtos: '0',
      requestNanos: String(nanos),
    },
    ...changes,
  });

/** One request of 10 + 1 tokens, for a third of a cent. */
const at = (endedAt: string, changes: Partial<UsageEvent> = {}) =>
  costing(3_333_333, { endedAt, promptTokens: 10, cachedTokens: 0, completionTokens: 1, ...changes });

const EVENTS = [
  at('2026-11-20T23:59:59.999Z'),
  at('2026-11-21T00:00:00.000Z', { model: 'b' }),
  at('2026-11-21T10:10:00.000Z', { model: 'a', keyId: OTHER_KEY }),
  at('2026-11-21T10:59:59.999Z', { model: 'a' }),
  at('2026-11-21T11:00:00.000Z', { model: 'a' }),
  at('2026-11-21T11:30:00.000Z', { model: 'b' }),
  at('2026-11-21T12:20:00.000Z', { model: 'a' }),
];

beforeAll(async () => {
  queries = new UsageQueries(database.dataSource, new UsageReads(database.dataSource));
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume([
    ...EVENTS,
    at('2026-11-21T11:00:00.000Z', { tenantId: newId('ten') }),
  ]);
});

describe('the range', () => {
  it.each([
    ['2026-11-21T10:10:00.000Z', '2026-11-21T12:20:00.000Z', 4],
    ['2026-11-21T10:10:00.001Z', '2026-11-21T12:20:00.001Z', 4],
    ['2026-11-21T10:00:00Z', '2026-11-21T12:00:00Z', 4],
    ['2026-11-21T10:10:00Z', '2026-11-21T10:59:59.999Z', 1],
    ['2026-11-21T10:59:59.999Z', '2026-11-21T11:00:00.000Z', 1],
    ['2026-11-21T10:59:59.999Z', '2026-11-21T11:00:00.001Z', 2],
    ['2026-11-21T11:00:00Z', '2026-11-21T11:00:00Z', 0],
    ['2026-11-21', '2026-11-22', 6],
    ['2026-11-20', '2026-11-21', 1],
    ['2000-01-01', '2100-01-01', 7],
    ['2026-11-22', '2100-01-01', 0],
    ['2000-01-01', '9999-12-31T23:59:59.999Z', 7],
    ['9999-12-31T23:10:00Z', '9999-12-31T23:30:00Z', 0],
  ])('from %s to before %s has %i requests', async (from, to, expected) => {
    expect(await requests(from, to)).toBe(expected);
  });

  it('is answered as it was understood', async () => {
    expect(await ask('2026-11-21', '2026-11-22')).toEqual({
      from: '2026-11-21T00:00:00.000Z',
      to: '2026-11-22T00:00:00.000Z',
      totals: {
        ...{ requests: 6, failed: 0, clientClosed: 0, promptTokens: 60, cachedTokens: 0, completionTokens: 6 },
        ...{ reasoningTokens: 0, totalTokens: 66, costCents: 2, costNanos: '19999998' },
      },
      groups: [],
    });
  });

  it.each<[string, Partial<UsageQuery>]>([
    ['from after to', { from: '2026-11-22', to: '2026-11-21' }],
    ['an invalid time', { from: 'yesterday' }],
    ['a time without a zone', { to: '2026-11-21T10:00' }],
    ['a time before 1970', { from: '1969-12-31T23:59:59Z' }],
    ['a time in the year 0', { from: '0000-01-01' }],
    ['an unknown grouping', { groupBy: ['constructor' as UsageGroup] }],
  ])('is refused with %s', async (_, changes) => {
    const refused = ask('2026-11-20', '2026-11-21', changes);
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
  });
});

describe('groups', () => {
  it('are sorted by time, then model, then key, and their cents add up to the total', async () => {
    const { totals, groups } = await ask('2026-11-20', '2026-11-22', { groupBy: ['key', 'model', 'day'] });
    const keys = [KEY, OTHER_KEY].sort();
    expect(groups.map(({ day, model, key, requests: n }) => [day, model, key, n])).toEqual([
      ['2026-11-20', 'sim-small', KEY, 1],
      ...keys.map((key) => ['2026-11-21', 'a', key, key === KEY ? 3 : 1]),
      ['2026-11-21', 'b', KEY, 2],
    ]);
    expect(totals).toMatchObject({ requests: 7, costCents: 2 });
    expect(groups.reduce((sum, group) => sum + group.costCents, 0)).toBe(2);
  });

  it('by hour name the full hour, including the partial hours at the edges', async () => {
    const { groups } = await ask('2026-11-21T10:30:00Z', '2026-11-21T12:30:00Z', { groupBy: ['hour', 'day'] });
    expect(groups.map(({ day, hour, requests: n }) => [day, hour, n])).toEqual([
      ['2026-11-21', '2026-11-21T10:00:00.000Z', 1],
      ['2026-11-21', '2026-11-21T11:00:00.000Z', 2],
      ['2026-11-21', '2026-11-21T12:00:00.000Z', 1],
    ]);
  });

  it('contain only what the filters select', async () => {
    expect(await requests('2026-11-21', '2026-11-22', { model: 'a' })).toBe(4);
    expect(await requests('2026-11-21T10:10:00Z', '2026-11-22', { model: 'a', keyId: OTHER_KEY })).toBe(1);
    expect(await requests('2026-11-21', '2026-11-22', { keyId: newId('key') })).toBe(0);
    expect(await requests('2026-11-21', '2026-11-22', { tenantId: newId('ten') })).toBe(0);
  });

  it('count the estimated requests of whole and partial hours, and omit the count if there are none', async () => {
    const tenantId = newId('ten');
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([
      at('2026-11-21T10:30:00.000Z', { tenantId, model: 'a', estimated: true }),
      at('2026-11-21T11:30:00.000Z', { tenantId, model: 'a', estimated: true }),
      at('2026-11-21T11:40:00.000Z', { tenantId, model: 'a' }),
      at('2026-11-21T12:05:00.000Z', { tenantId, model: 'a', estimated: true }),
      at('2026-11-21T11:50:00.000Z', { tenantId, model: 'b' }),
    ]);
    const range = ['2026-11-21T10:10:00Z', '2026-11-21T12:10:00Z'] as const;
    const { totals, groups } = await ask(...range, { tenantId, groupBy: ['model'] });
    expect([totals.requests, totals.estimatedRequests]).toEqual([5, 3]);
    expect(groups.map(({ model, estimatedRequests }) => [model, estimatedRequests])).toEqual([
      ['a', 3],
      ['b', undefined],
    ]);
    expect((await ask(...range, { tenantId, model: 'b' })).totals).not.toHaveProperty('estimatedRequests');
  });

  it('count errors, cached and reasoning tokens of whole and partial hours, also by backend', async () => {
    const tenantId = newId('ten');
    const ended = (time: string, changes: Partial<UsageEvent>) =>
      at(`2026-11-21T${time}:00.000Z`, {
        tenantId,
        cachedTokens: 4,
        reasoningTokens: 1,
        backend: 'http://a',
        ...changes,
      });
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume([
      ended('10:30', { outcome: 'upstream_error' }),
      ended('11:30', { outcome: 'credit_ended', backend: 'http://b' }),
      ended('11:40', { outcome: 'client_closed' }),
      ended('11:50', {}),
      ended('12:05', { outcome: 'expired', backend: undefined! }),
    ]);
    const range = ['2026-11-21T10:10:00Z', '2026-11-21T12:10:00Z'] as const;
    const numbers = { requests: 5, failed: 3, clientClosed: 1, cachedTokens: 20, reasoningTokens: 5 };
    expect((await ask(...range, { tenantId, groupBy: ['hour'] })).totals).toMatchObject(numbers);
    const { totals, groups } = await ask(...range, { tenantId, groupBy: ['backend', 'hour'] });
    expect(totals).toMatchObject({ ...numbers, costNanos: String(5 * 3_333_333) });
    expect(groups.map(({ hour, backend, requests: n, failed }) => [hour?.slice(11, 13), backend, n, failed])).toEqual([
      ['10', 'http://a', 1, 1],
      ['11', 'http://a', 2, 0],
      ['11', 'http://b', 1, 1],
      ['12', null, 1, 1],
    ]);
    const long = ask('2026-10-01', '2026-11-30', { tenantId, groupBy: ['backend'] });
    await expect(long).rejects.toMatchObject({
      code: 'invalid_parameter',
      message: expect.stringContaining('32 days'),
    });
  });

  it('are empty when there is no usage', async () => {
    expect(await ask('2030-01-01', '2030-01-02', { groupBy: ['model'] })).toMatchObject({
      totals: { requests: 0, costCents: 0 },
      groups: [],
    });
  });

  it('are refused, not cut off, when there are too many', async () => {
    const tenantId = newId('ten');
    await database.query(
      `INSERT INTO metering.usage_hour
       SELECT $1, timestamptz '2020-01-01Z' + make_interval(hours => n), 'm', 'k', 1, 1, 0, 1, 0, 1
       FROM generate_series(1, ${MAX_GROUPS + 1}) n`,
      [tenantId],
    );
    const refused = ask('2020-01-01', '2030-01-01', { tenantId, groupBy: ['hour'] });
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_parameter',
      message: expect.stringContaining('Narrow the range'),
    });
    expect((await ask('2020-01-01', '2030-01-01', { tenantId, groupBy: ['day'] })).totals.requests).toBe(
      MAX_GROUPS + 1,
    );
  });

  it('are refused when their answer is larger than a message, though they are not too many', async () => {
    const tenantId = newId('ten');
    // Keys and numbers of which no two are alike: they hardly shrink.
    const any = '(random() * 9e14)::bigint';
    await database.query(
      `INSERT INTO metering.usage_hour (tenant_id, hour, model, key_id, requests, prompt_tokens, cached_tokens,
         completion_tokens, reasoning_tokens, estimated, cost_nanos)
       SELECT $1, timestamptz '2020-01-01Z', 'm', 'key_' || left(encode(sha256(n::text::bytea), 'base64'), 26), ${any},
         ${any}, ${any}, ${any}, ${any}, ${any}, ${any}
       FROM generate_series(1, ${MAX_GROUPS}) n`,
      [tenantId],
    );
    const refused = ask('2020-01-01', '2020-02-01', { tenantId, groupBy: ['key', 'hour', 'model'] });
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_parameter',
      message: expect.stringContaining('Narrow the range'),
    });
    expect((await ask('2020-01-01', '2020-02-01', { tenantId, groupBy: ['model'] })).groups).toHaveLength(1);
  });
});

it('any range and grouping equals the events, before and after they are folded, and its parts add up', async () => {
  const HOUR_MS = 3_600_000;
  // Over a midnight.
  const FROM_MS = Date.UTC(2026, 10, 20, 22);
  const minute = fc.integer({ min: -5, max: 245 }).map((n) => new Date(FROM_MS + n * 60_000).toISOString());
  const tenantId = newId('ten');
  const events = fc.sample(
    fc.record({
      ms: fc.nat(4 * HOUR_MS),
      model: fc.constantFrom('a', 'b', 'c'),
      keyId: fc.constantFrom(KEY, OTHER_KEY),
      promptTokens: fc.integer({ min: 0, max: 1000 }),
      cost: fc.nat(30_000_000),
    }),
    { seed: 7, numRuns: 300 },
  );
  const recorded = events.map(({ ms, cost, ...rest }) =>
    costing(cost, { ...rest, tenantId, endedAt: new Date(FROM_MS + ms).toISOString(), cachedTokens: 0 }),
  );
  // In batches of 100, so that sums are added to, not only created.
  for (let i = 0; i < 300; i += 100)
    await new UsageConsumer(database.dataSource, ANY_PRICE).consume(recorded.slice(i, i + 100));
  const holds = (seed: number) => {
    const grouping = fc.subarray<UsageGroup>(['model', 'key', 'day', 'hour', 'backend']);
    const property = fc.asyncProperty(minute, minute, grouping, async (a, b, groupBy) => {
      const [from, to] = [a, b].sort() as [string, string];
      const inside = recorded.filter(({ endedAt }) => endedAt >= from && endedAt < to);
      const { totals, groups } = await ask(from, to, { tenantId, groupBy });
      const nanos = inside.reduce((sum, event) => sum + Number(event.costNanos), 0);
      expect(totals).toMatchObject({
        requests: inside.length,
        promptTokens: inside.reduce((sum, event) => sum + event.promptTokens, 0),
        costCents: Math.floor((nanos + 5_000_000) / 10_000_000),
      });
      if (groupBy.length === 0) return expect(groups).toEqual([]);
      for (const name of ['requests', 'promptTokens', 'completionTokens', 'totalTokens', 'costCents'] as const) {
        expect(groups.reduce((sum, group) => sum + group[name], 0)).toBe(totals[name]);
      }
      const keys = groups.map(({ day, hour, model, key }) => [day, hour, model, key].join(' '));
      expect(keys).toEqual([...new Set(keys)].sort());
    });
    return assertRuns(property, { seed, leastRuns: 50, mostRuns: 150, timeBoxMs: 8_000 });
  };
  await holds(11);
  // The first day, and three hours of the second.
  expect(await new UsageDays(database.dataSource).fold(FROM_MS + 8 * HOUR_MS)).toBeGreaterThan(0);
  await holds(12);
});
