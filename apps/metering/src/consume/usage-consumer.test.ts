import { newId, type Charge, type UsageEvent } from '@tollgate/contracts';
import { assertRuns } from '@tollgate/testing';
import fc from 'fast-check';
import { openMeteringDatabase } from '../database';
import { useMeteringDatabase } from '../metering-database.fixture';
import { ANY_PRICE, KEY, TENANT, usageEvent } from '../sample-events.fixture';
import { UsageConsumer } from './usage-consumer';

// Real: PostgreSQL. The tests call the consumer as the messages seam does: in batches, any of them repeatedly.
const database = useMeteringDatabase();
let consumer: UsageConsumer;

beforeAll(() => {
  consumer = new UsageConsumer(database.dataSource, ANY_PRICE);
});
beforeEach(() =>
  database.query(
    'TRUNCATE metering.usage_event, metering.usage_hour, metering.tenant_sum, metering.rejected_event, metering.outbox',
  ),
);

const count = async (table: string) =>
  Number((await database.query<{ n: string }>(`SELECT count(*) AS n FROM metering.${table}`))[0]!.n);
const charges = async () =>
  (await database.query<{ data: Charge }>(`SELECT data FROM metering.outbox WHERE topic = 'charges' ORDER BY id`)).map(
    (row) => row.data,
  );

/** The stored sums must be the sums of the events. */
async function expectSumsToEqualEvents(): Promise<void> {
  const sums = `count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, count(*) FILTER (WHERE estimated) AS estimated,
    sum(cost_nanos) AS cost_nanos, sum(reasoning_tokens) AS reasoning_tokens`;
  expect(await database.query('SELECT * FROM metering.usage_hour ORDER BY tenant_id, hour, model, key_id')).toEqual(
    await database.query(
      `SELECT tenant_id, date_trunc('hour', ended_at, 'UTC') AS hour, model, key_id, ${sums}
       FROM metering.usage_event GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
    ),
  );
  expect(await database.query('SELECT * FROM metering.tenant_sum ORDER BY tenant_id')).toEqual(
    await database.query(
      `SELECT tenant_id, count(*) AS events, sum(cost_nanos) AS cost_nanos
       FROM metering.usage_event
       GROUP BY 1
       ORDER BY 1`,
    ),
  );
}

describe('recording', () => {
  it.each(['order-17', 'null'])('stores the id %s of a caller once, and charges one with an invalid id', async (id) => {
    await database.query('TRUNCATE metering.caller_request');
    const [named, other, plain] = [
      usageEvent({ callerRequestId: id }),
      usageEvent({ callerRequestId: 'a b' }),
      usageEvent(),
    ];
    await consumer.consume([named, other, plain]);
    await consumer.consume([named]);
    expect(await database.query(`SELECT * FROM metering.caller_request WHERE id = $1`, [named.id])).toEqual([
      { caller_request_id: id, id: named.id },
    ]);
    expect([await count('caller_request'), await count('usage_event')]).toEqual([1, 3]);
  });

  it('stores the whole event, its rating and its charge', async () => {
    const event = usageEvent({
      model: 'odd \\ "name", {x}',
      stream: true,
      estimated: true,
      outcome: 'client_closed',
      kind: 'completion',
      backend: 'http://gpu:8000/v1',
    });
    const result = await consumer.consume([event]);
    expect(result).toEqual({ recorded: 1, repeated: 0, rejected: 0 });
    const { price } = event;
    expect(await database.query('SELECT * FROM metering.usage_event')).toEqual([
      {
        id: event.id,
        life: null,
        backend: 'http://gpu:8000/v1',
        tenant_id: TENANT,
        key_id: KEY,
        model: 'odd \\ "name", {x}',
        kind: 'completion',
        stream: true,
        estimated: true,
        outcome: 'client_closed',
        started_at: new Date(event.startedAt),
        ended_at: new Date(event.endedAt),
        rated_at: expect.any(Date),
        prompt_tokens: 100,
        cached_tokens: 20,
        completion_tokens: 50,
        cost_nanos: event.costNanos,
        overrun_nanos: '0',
        rated_nanos: null,
        reasoning_tokens: 0,
        price_version: price.version,
        input_femtos: price.inputFemtos,
        cached_input_femtos: price.cachedInputFemtos,
        output_femtos: price.outputFemtos,
        request_nanos: price.requestNanos,
      },
    ]);
    expect(await charges()).toEqual([
      {
        id: event.id,
        tenantId: TENANT,
        keyId: KEY,
        costNanos: event.costNanos,
        endedAt: event.endedAt,
        defaultBudgets: {},
      },
    ]);
  });

  it('is all or nothing: a failure at its last step leaves nothing, and a redelivery is recorded', async () => {
    const events = [usageEvent(), usageEvent(), { broken: true }];
    await database.query('ALTER TABLE metering.outbox ADD CONSTRAINT refuse CHECK (false)');
    await expect(consumer.consume(events)).rejects.toThrow(/refuse/);
    for (const table of ['usage_event', 'usage_hour', 'tenant_sum', 'rejected_event', 'outbox'])
      expect(await count(table)).toBe(0);
    await database.query('ALTER TABLE metering.outbox DROP CONSTRAINT refuse');
    expect(await consumer.consume(events)).toMatchObject({ recorded: 2, rejected: 1 });
    await expectSumsToEqualEvents();
  });

  it('is all or nothing when the connection dies in the middle', async () => {
    const events = Array.from({ length: 50 }, () => usageEvent());
    // Blocks the consumer at its sums, after it has written the events.
    await database.query('BEGIN');
    await database.query('LOCK TABLE metering.usage_hour IN ACCESS EXCLUSIVE MODE');
    const consumed = consumer.consume(events);
    const outcome = expect(consumed).rejects.toThrow();
    for (let killed = 0; killed === 0;) {
      const rows = await database.query(
        `SELECT pg_terminate_backend(pid)
         FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      killed = rows.length;
    }
    await outcome;
    await database.query('ROLLBACK');
    for (const table of ['usage_event', 'usage_hour', 'outbox']) expect(await count(table)).toBe(0);
    expect(await consumer.consume(events)).toMatchObject({ recorded: 50 });
    await expectSumsToEqualEvents();
  });
});

describe('repeats', () => {
  it('inside a batch count once, and the first one stays', async () => {
    const event = usageEvent();
    expect(await consumer.consume([event, { ...event, model: 'other' }, event])).toMatchObject({
      recorded: 1,
      repeated: 2,
    });
    expect(await database.query('SELECT model FROM metering.usage_event')).toEqual([{ model: 'sim-small' }]);
    expect(await charges()).toHaveLength(1);
    await expectSumsToEqualEvents();
  });

  it('in a later batch count once, and their charge is published again as recorded', async () => {
    const [first, second] = [usageEvent({ defaultBudgets: { tenantCents: 5 } }), usageEvent()];
    await consumer.consume([first]);
    expect(await consumer.consume([second, { ...first, costNanos: '999', tenantId: newId('ten') }])).toMatchObject({
      recorded: 1,
      repeated: 1,
    });
    expect(await count('usage_event')).toBe(2);
    const sent = await charges();
    expect(sent).toHaveLength(3);
    // Published again from the table, which does not store the budgets of that time.
    const { defaultBudgets, ...stored } = sent[0]!;
    expect(defaultBudgets).toEqual({ tenantCents: 5 });
    expect(sent.filter(({ id }) => id === first.id)).toEqual([sent[0], stored]);
    await expectSumsToEqualEvents();
  });

  it('at several consumers at once count once, in any order', async () => {
    const other = await openMeteringDatabase(database.url);
    try {
      const events = Array.from({ length: 600 }, (_, i) => usageEvent({ model: `model-${i % 7}` }));
      const consumers = [consumer, new UsageConsumer(other, ANY_PRICE), new UsageConsumer(other, ANY_PRICE)];
      const results = await Promise.all(
        [0, 100, 200, 150, 50, 250].map((offset, i) => {
          const batch = events.slice(offset, offset + 350);
          return consumers[i % 3]!.consume(i % 2 ? batch.reverse() : batch);
        }),
      );
      expect(results.reduce((sum, result) => sum + result.recorded, 0)).toBe(600);
      expect(await count('usage_event')).toBe(600);
      expect(new Set((await charges()).map(({ id }) => id)).size).toBe(600);
      await expectSumsToEqualEvents();
    } finally {
      await other.destroy();
    }
  });
});

describe('bad events', () => {
  const TEN_KINDS: unknown[] = [
    null,
    'text',
    { ...usageEvent(), id: 'req_nonsense' },
    { ...usageEvent(), tenantId: 5 },
    { ...usageEvent(), model: 'a\u0000b' },
    { ...usageEvent(), kind: 'video' },
    { ...usageEvent(), promptTokens: -3 },
    { ...usageEvent(), price: { ...usageEvent().price, inputFemtos: '0.15' } },
    { ...usageEvent(), costNanos: '99999999999999999999' },
    { ...usageEvent(), endedAt: 'yesterday' },
  ];

  it('are not charged if tokens and price do not give their cost', async () => {
    const full = BigInt(usageEvent().costNanos);
    const forged = [2n ** 63n - 1n, full * 100n, full + 1n, full - 1n].map((cost) =>
      usageEvent({ costNanos: String(cost) }),
    );
    const good = usageEvent();
    expect(await consumer.consume([...forged, good])).toEqual({ recorded: 1, repeated: 0, rejected: 4 });
    expect((await charges()).map(({ id }) => id)).toEqual([good.id]);
    expect(await database.query('SELECT DISTINCT tenant_id, reason FROM metering.rejected_event')).toEqual([
      { tenant_id: TENANT, reason: `costNanos: with overrunNanos not the ${full} that its tokens cost` },
    ]);
    await expectSumsToEqualEvents();
  });

  it('of a recorded request are repeats of it, and its charge is published again as recorded', async () => {
    const event = usageEvent();
    await consumer.consume([event]);
    expect(await consumer.consume([{ ...event, costNanos: '7' }])).toEqual({ recorded: 0, repeated: 1, rejected: 0 });
    expect((await charges()).map(({ costNanos }) => costNanos)).toEqual([event.costNanos, event.costNanos]);
    expect(await count('rejected_event')).toBe(0);
  });

  it('are quarantined whole, with the reason, and the valid events of the batch are recorded', async () => {
    const batch = TEN_KINDS.flatMap((bad) => [usageEvent(), bad]);
    expect(await consumer.consume(batch)).toMatchObject({ recorded: 10, rejected: 10 });
    const rows = await database.query<{ event: string; reason: string }>(
      'SELECT event, reason FROM metering.rejected_event',
    );
    const kept = rows.map((row) => JSON.parse(row.event) as unknown);
    expect(kept).toHaveLength(10);
    expect(kept).toEqual(expect.arrayContaining(TEN_KINDS));
    expect(new Set(rows.map((row) => row.reason)).size).toBe(9);
    await expectSumsToEqualEvents();
  });

  it.each(['a', ''])('are quarantined without what is nested too deeply in members named %j', async (name) => {
    const deep: unknown = JSON.parse(`${`{"${name}":`.repeat(20_000)}1${'}'.repeat(20_000)}`);
    const bad = { ...usageEvent(), kind: 'video', [name]: deep };
    expect(await consumer.consume([bad, usageEvent()])).toMatchObject({ recorded: 1, rejected: 1 });
    expect(await database.query('SELECT event FROM metering.rejected_event')).toEqual([
      { event: expect.stringContaining(`"${name}":"nested too deep"`) },
    ]);
  });

  it('that are redelivered count up, and are not stored twice', async () => {
    const bad = { ...usageEvent(), kind: 'video' };
    await consumer.consume([bad, bad]);
    await consumer.consume([bad]);
    expect(await database.query('SELECT reason, times FROM metering.rejected_event')).toEqual([
      { reason: 'kind: unknown', times: '3' },
    ]);
  });
});

it('rollups equal the events after any sequence of batches', async () => {
  const ids = Array.from({ length: 60 }, () => newId('req'));
  const tenants = [TENANT, newId('ten')];
  const event = fc
    .record({
      id: fc.constantFrom(...ids),
      tenantId: fc.constantFrom(...tenants),
      model: fc.constantFrom('a', 'a b', 'ä"\\'),
      promptTokens: fc.integer({ min: 20, max: 1_000_000 }),
      completionTokens: fc.nat(1_000_000),
      estimated: fc.boolean(),
      endedAt: fc.constantFrom('2026-10-31T23:59:59.999Z', '2026-11-01T00:00:00.000Z', '2026-11-01T00:30:00.000Z'),
    })
    .map((changes): UsageEvent => usageEvent(changes));
  await assertRuns(
    fc.asyncProperty(fc.array(fc.array(event, { maxLength: 20 }), { minLength: 1, maxLength: 4 }), async (batches) => {
      const [first, ...rest] = batches;
      await consumer.consume(first!);
      await Promise.all(rest.map((batch) => consumer.consume(batch)));
      await expectSumsToEqualEvents();
    }),
    { seed: 42, leastRuns: 20, mostRuns: 60, timeBoxMs: 8_000 },
  );
});
