import { newId, RequestError, type Outcome, type RequestsQuery, type UsageEvent } from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { UsageConsumer } from '../consume/usage-consumer';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { RequestsList } from './requests-list';

const database = useMeteringDatabase();
const HOUR_MS = 3_600_000;
const DAY_MS = Date.UTC(2026, 10, 21);
const HOURS = 6;
const OUTCOMES: Outcome[] = ['complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired'];
const [TENANT, KEY, OTHER_KEY] = [newId('ten'), newId('key'), newId('key')];

/** 400 requests, few moments: many end in the same millisecond. */
const EVENTS = fc
  .sample(
    fc.record({
      ms: fc.nat(HOURS * 12).map((n) => n * 300_000),
      model: fc.constantFrom('a', 'a', 'a', 'b'),
      keyId: fc.constantFrom(KEY, KEY, KEY, OTHER_KEY),
      outcome: fc.constantFrom<Outcome>('complete', 'complete', 'complete', 'complete', ...OUTCOMES),
    }),
    { seed: 3, numRuns: 400 },
  )
  .map(({ ms, ...rest }) => usageEvent({ ...rest, tenantId: TENANT, endedAt: new Date(DAY_MS + ms).toISOString() }));
/** The order of the list. */
const NEWEST_FIRST = [...EVENTS].sort((a, b) => (a.endedAt + a.id < b.endedAt + b.id ? 1 : -1));

const list = (small?: { hours: number; ms: number }) => new RequestsList(database.dataSource, small);

/** The ids on all pages, and the number of pages. */
async function readAll(of: RequestsList, asked: Omit<RequestsQuery, 'tenantId'>): Promise<[string[], number]> {
  const ids: string[] = [];
  for (let after: string | undefined, pages = 1; ; pages++) {
    if (pages > 2 * EVENTS.length) throw new Error(`no end: ${after}`);
    const page = await of.page({ tenantId: TENANT, ...asked, ...(after !== undefined && { after }) });
    ids.push(...page.data.map(({ id }) => id));
    if (page.nextCursor === null) return [ids, pages];
    after = page.nextCursor;
  }
}

function expected({ from = '', to = '~', model, keyId, outcome }: Omit<RequestsQuery, 'tenantId'>): string[] {
  const isMatch = (event: UsageEvent) =>
    event.endedAt >= from &&
    event.endedAt < to &&
    (model === undefined || event.model === model) &&
    (keyId === undefined || event.keyId === keyId) &&
    (outcome === undefined || event.outcome === outcome);
  return NEWEST_FIRST.filter(isMatch).map(({ id }) => id);
}

beforeAll(async () => {
  const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
  await consumer.consume(EVENTS);
  await consumer.consume([usageEvent({ endedAt: new Date(DAY_MS).toISOString() })]);
});

describe('the requests of a tenant', () => {
  it('are its own, newest first, with all that is recorded of them', async () => {
    const { data, nextCursor } = await list().page({ tenantId: TENANT, limit: 2 });
    const { price, ...newest } = NEWEST_FIRST[0]!;
    expect(data[0]).toEqual({ ...newest, reasoningTokens: 0, priceVersion: price.version, firstMs: null });
    expect(data[1]!.id).toBe(NEWEST_FIRST[1]!.id);
    expect(nextCursor).toBe(`${data[1]!.endedAt}~${data[1]!.id}`);
  });

  it('are empty for a tenant without any', async () => {
    const tenantId = newId('ten');
    expect(await list().page({ tenantId })).toEqual({ data: [], nextCursor: null });
    for (const to of ['2100-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'])
      expect(await list().page({ tenantId, model: 'a', to })).toEqual({ data: [], nextCursor: null });
  });

  it('stay in place on later pages when newer ones arrive meanwhile', async () => {
    const tenantId = newId('ten');
    const consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
    const at = (ms: number) => usageEvent({ tenantId, endedAt: new Date(DAY_MS + ms).toISOString() });
    const [old, middle, young] = [at(1), at(2), at(3)];
    await consumer.consume([old, middle]);
    const first = await list().page({ tenantId, limit: 1 });
    await consumer.consume([young]);
    const second = await list().page({ tenantId, limit: 1, after: first.nextCursor! });
    expect([first, second].map(({ data }) => data[0]!.id)).toEqual([middle.id, old.id]);
    expect(second.nextCursor).toBeNull();
  });

  it.each<[string, Partial<RequestsQuery>]>([
    ['a limit of 0', { limit: 0 }],
    ['a limit of 201', { limit: 201 }],
    ['an invalid time', { from: 'yesterday' }],
    ['from after to', { from: '2026-11-22', to: '2026-11-21' }],
    ['an unknown outcome', { outcome: 'toString' as Outcome }],
    ['a model that no text of PostgreSQL can be', { model: 'a\0' }],
    ['a key that is no text', { keyId: {} as string }],
    ['an id that no caller can have chosen', { callerRequestId: 'a b' }],
    ['another cursor', { after: newId('req') }],
    ['a cursor of no time', { after: '2026-99-21T00:00:00.000Z~' }],
    // PostgreSQL has no year 0, so it would refuse the statement.
    ['a cursor of a time before all requests', { after: '0000-01-01T00:00:00.000Z~' }],
    ['a cursor of no request', { after: '2026-11-21T00:00:00.000Z~x' }],
  ])('are refused with %s', async (_, changes) => {
    const refused = list().page({ tenantId: TENANT, ...changes });
    await expect(refused).rejects.toThrow(RequestError);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter' });
  });

  it('are on pages of any size exactly those of the filters, whatever work a page may do', async () => {
    const time = fc.integer({ min: -30, max: HOURS * 60 + 30 }).map((n) => new Date(DAY_MS + n * 60_000).toISOString());
    const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
    await assertRuns(
      fc.asyncProperty(
        fc.record({
          times: maybe(fc.tuple(time, time)),
          model: maybe(fc.constantFrom('a', 'b', 'c')),
          keyId: maybe(fc.constantFrom(KEY, OTHER_KEY)),
          outcome: maybe(fc.constantFrom(...OUTCOMES)),
          limit: fc.constantFrom(5, 50, 200),
          most: fc.record({ hours: fc.constantFrom(1, 2, 200), ms: fc.constantFrom(0, 60_000) }),
        }),
        async ({ times, limit, most, ...filters }) => {
          const [from, to] = [...(times ?? [])].sort();
          const given = { ...filters, ...(from !== undefined && { from, to }) };
          const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
          const [ids, pages] = await readAll(list(most), { ...asked, limit });
          expect(ids).toEqual(expected(asked));
          expect(pages).toBeLessThanOrEqual(Math.ceil(ids.length / limit) + 2 * HOURS + 2);
        },
      ),
      { seed: 5, leastRuns: 30, mostRuns: 150, timeBoxMs: 8_000 },
    );
  });

  it('are searched in few hours: a page ends where its work ends, and the next goes on there', async () => {
    const { data, nextCursor } = await list({ hours: 200, ms: 0 }).page({
      tenantId: TENANT,
      model: 'b',
      limit: 200,
    });
    const lastHour = NEWEST_FIRST.find(({ model }) => model === 'b')!.endedAt.slice(0, 13);
    expect(nextCursor).toBe(`${lastHour}:00:00.000Z~`);
    expect(data.map(({ id }) => id)).toEqual(expected({ model: 'b', from: lastHour }));
    expect(Date.parse(data.at(-1)!.endedAt)).toBeLessThan(Date.parse(`${lastHour}:00:00.000Z`) + HOUR_MS);
  });
});

it('a streamed request has the time to its first output', async () => {
  const tenantId = newId('ten');
  const life = { key: [1, 2, 3], tenant: [4, 5, 6], heldNanos: '7', firstMs: 84 } as const;
  const events = [
    usageEvent({ tenantId, life }),
    usageEvent({ tenantId }),
    usageEvent({ tenantId, life: 'x' as never }),
    // Metering stores any count: one that is too large for a column must not hide the other requests.
    usageEvent({ tenantId, life: { ...life, firstMs: Number.MAX_SAFE_INTEGER } }),
  ];
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume(events);
  const { data } = await list().page({ tenantId, limit: 10 });
  const shown = new Map(data.map(({ id, firstMs }) => [id, firstMs]));
  expect(events.map(({ id }) => shown.get(id))).toEqual([84, null, null, Number.MAX_SAFE_INTEGER]);
});

it('an id that callers chose finds the requests of the tenant with it, newest first, page by page', async () => {
  const [tenantId, other] = [newId('ten'), newId('ten')];
  const callerRequestId = 'order-17';
  const at = (ms: number, more: Partial<UsageEvent>) =>
    usageEvent({ tenantId, callerRequestId, endedAt: new Date(DAY_MS + ms).toISOString(), ...more });
  const [first, second, third] = [at(1, {}), at(2, { model: 'b' }), at(HOUR_MS, {})];
  const others = [at(3, { callerRequestId: 'order-18' }), usageEvent({ tenantId }), at(4, { tenantId: other })];
  await new UsageConsumer(database.dataSource, ANY_PRICE).consume([first, second, third, ...others]);
  const ids = async (asked: Omit<RequestsQuery, 'tenantId'>) => {
    const { data, nextCursor } = await list().page({ tenantId, callerRequestId, ...asked });
    return [data.map(({ id }) => id), nextCursor] as const;
  };
  expect(await ids({})).toEqual([[third.id, second.id, first.id], null]);
  const [page, nextCursor] = await ids({ limit: 2 });
  expect(page).toEqual([third.id, second.id]);
  expect(await ids({ limit: 2, after: nextCursor! })).toEqual([[first.id], null]);
  expect(await ids({ model: 'b' })).toEqual([[second.id], null]);
  expect(await ids({ from: third.endedAt })).toEqual([[third.id], null]);
  expect(await ids({ callerRequestId: 'order-19' })).toEqual([[], null]);
  expect((await list().page({ tenantId: other, callerRequestId })).data).toMatchObject([{ id: others[2]!.id }]);
  expect((await list().page({ tenantId: newId('ten'), callerRequestId })).data).toEqual([]);
});
