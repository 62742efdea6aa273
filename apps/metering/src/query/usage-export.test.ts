import {
  idBound,
  newId,
  type ExportedUsage,
  type Outcome,
  type UsageEvent,
  type UsageExportQuery,
} from '@tollgate/contracts';
import fc from 'fast-check';
import { Client } from 'pg';
import { UsageConsumer } from '../consume/usage-consumer';
import { POOL_SIZE } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { UsageExport } from './usage-export';

const database = useMeteringDatabase();
const TENANTS = Array.from({ length: 3 }, () => newId('ten')).sort();
const KEYS = Array.from({ length: 3 }, () => newId('key'));
const START_MS = Date.UTC(2026, 9, 30, 22);
/** An id of this time. `newId` never goes back. */
const requestId = (ms: number) => idBound('req', ms).slice(0, 14) + newId('req').slice(14);
const RANGE = { from: '2026-10-31T00:00:00.000Z', to: '2026-11-01T00:00:00.000Z' };

/** Requests of two days around the range, some of which end hours after their start. */
const EVENTS = fc
  .sample(
    fc.record({
      ms: fc.nat(40 * 3_600_000),
      tookMs: fc.constantFrom(0, 1, 1_000, 3_600_000, 20 * 3_600_000),
      tenantId: fc.constantFrom(...TENANTS),
      keyId: fc.constantFrom(...KEYS),
      model: fc.constantFrom('a', 'b'),
      promptTokens: fc.integer({ min: 100, max: 100_000 }),
      outcome: fc.constantFrom<Outcome>('complete', 'complete', 'client_closed', 'upstream_error', 'expired'),
      estimated: fc.boolean(),
    }),
    { seed: 4, numRuns: 300 },
  )
  .map(({ ms, tookMs, ...rest }) => {
    const startedMs = START_MS + ms;
    const times = { startedAt: new Date(startedMs).toISOString(), endedAt: new Date(startedMs + tookMs).toISOString() };
    return usageEvent({ id: requestId(startedMs), ...times, ...rest, backend: 'http://gpu/v1' });
  });
const inRange = EVENTS.filter(({ endedAt }) => endedAt >= RANGE.from && endedAt < RANGE.to);

beforeAll(async () => {
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume(EVENTS);
});

async function all(asked: Partial<UsageExportQuery>, limit: number): Promise<ExportedUsage[]> {
  const rows: ExportedUsage[] = [];
  for (let after: string | undefined; ;) {
    const query = { ...RANGE, step: 'request' as const, ...asked, limit, ...(after !== undefined && { after }) };
    const { data, nextCursor } = await new UsageExport(database.dataSource).page(query);
    rows.push(...data);
    if (nextCursor === null) return rows;
    expect(data).toHaveLength(limit);
    after = nextCursor;
  }
}
const sorted = (ids: (string | null)[]) => [...ids].sort();

it.each([1, 7, 1_000])('an export has each request of the range once, in pages of %d', async (limit) => {
  const rows = await all({}, limit);
  expect(rows.map(({ id }) => id)).toEqual(sorted(inRange.map(({ id }) => id)));
  const event = inRange.find(({ outcome }) => outcome === 'upstream_error')!;
  expect(rows.find(({ id }) => id === event.id)).toEqual({
    ...{ id: event.id, from: event.startedAt, to: event.endedAt, tenantId: event.tenantId, keyId: event.keyId },
    ...{ model: event.model, kind: 'chat', outcome: 'upstream_error', backend: 'http://gpu/v1' },
    ...{ requests: 1, failed: 1, clientClosed: 0, estimated: event.estimated ? 1 : 0 },
    ...{
      promptTokens: event.promptTokens,
      cachedTokens: 20,
      completionTokens: 50,
      reasoningTokens: 0,
      costNanos: event.costNanos,
    },
  });
});

it('an export has the requests of one tenant, model and key alone, by their end', async () => {
  const [tenantId] = TENANTS as [string];
  const own = inRange.filter((event) => event.tenantId === tenantId);
  const rows = await all({ tenantId }, 7);
  expect(sorted(rows.map(({ id }) => id))).toEqual(sorted(own.map(({ id }) => id)));
  expect(rows.map(({ to }) => to)).toEqual(sorted(rows.map(({ to }) => to)));
  const [keyId] = KEYS as [string];
  const filtered = inRange.filter((event) => event.model === 'a' && event.keyId === keyId);
  expect((await all({ model: 'a', keyId }, 5)).map(({ id }) => id)).toEqual(sorted(filtered.map(({ id }) => id)));
  expect(await all({ tenantId: newId('ten') }, 5)).toEqual([]);
});

/** The sums by tenant, hour, model and key, in the order of the rollups. */
function hoursOf(
  events: UsageEvent[],
): Map<string, { requests: number; failed: number; nanos: bigint; tokens: number }> {
  const sums = new Map<string, { requests: number; failed: number; nanos: bigint; tokens: number }>();
  for (const event of events) {
    const name = [event.tenantId, `${event.endedAt.slice(0, 13)}:00:00.000Z`, event.model, event.keyId].join(' ');
    const sum = sums.get(name) ?? { requests: 0, failed: 0, nanos: 0n, tokens: 0 };
    sums.set(name, {
      requests: sum.requests + 1,
      failed: sum.failed + (event.outcome === 'upstream_error' || event.outcome === 'expired' ? 1 : 0),
      nanos: sum.nanos + BigInt(event.costNanos),
      tokens: sum.tokens + event.promptTokens,
    });
  }
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}

it.each([1, 7, 1_000])('an export has each hour’s sums once, equal to its requests, in pages of %d', async (limit) => {
  const rows = await all({ step: 'hour' }, limit);
  const sums = rows.map(({ tenantId, from, model, keyId, requests, failed, costNanos, promptTokens }) => [
    [tenantId, from, model, keyId].join(' '),
    { requests, failed, nanos: BigInt(costNanos), tokens: promptTokens },
  ]);
  expect(sums).toEqual([...hoursOf(inRange)]);
  const [tenantId] = TENANTS.slice(1) as [string];
  expect(await all({ step: 'hour', tenantId }, limit)).toEqual(rows.filter((row) => row.tenantId === tenantId));
});

it('an export refuses what is not a time, a full hour, a step or a cursor', async () => {
  const wrong: Partial<UsageExportQuery>[] = [
    { from: 'x' },
    { from: RANGE.to, to: RANGE.from },
    { step: 'day' as 'hour' },
    { step: 'hour', from: '2026-10-31T00:30:00Z' },
    { limit: 1_001 },
    { after: 'x' },
    { tenantId: TENANTS[0]!, after: 'x' },
    { tenantId: TENANTS[0]!, after: 'x~y' },
    { tenantId: TENANTS[0]!, after: `2026-02-30T00:00:00.000Z~${EVENTS[0]!.id}` },
    { step: 'hour', after: '[]' },
    { step: 'hour', after: '["a","2026-02-30T00:00:00.000Z","c","d"]' },
    { step: 'hour', after: '["a","1","c","d"]' },
    { from: '0000-01-01' },
    { step: 'hour', after: '["a","b","c","\0"]' },
    { step: 'hour', after: '{' },
    { model: '\0' },
  ];
  for (const asked of wrong)
    await expect(
      new UsageExport(database.dataSource).page({ ...RANGE, step: 'request', ...asked }),
    ).rejects.toMatchObject({ code: 'invalid_parameter' });
});

it('exports that the database keeps waiting leave connections for the recording of usage', async () => {
  const other = new Client({ connectionString: database.url });
  await other.connect();
  // Hours are read from it, and recording does not use it.
  await other.query('BEGIN; LOCK TABLE metering.dropped_unfinished');
  const exports = new UsageExport(database.dataSource);
  const pages = Array.from({ length: POOL_SIZE }, () => exports.page({ ...RANGE, step: 'hour' }));
  const event = usageEvent({ endedAt: RANGE.to });
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume([event]);
  await other.end();
  const [first, ...others] = await Promise.all(pages);
  expect(first!.data.length).toBeGreaterThan(0);
  expect(others).toEqual(others.map(() => first));
});
