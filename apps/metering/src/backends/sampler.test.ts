import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ANY_PRICE, usageEvent } from '../sample-events.fixture';
import { useMeteringDatabase } from '../metering-database.fixture';
import { UsageConsumer } from '../consume/usage-consumer';
import { compareBackends, JUDGE_AFTER_MS } from './compare';
import { MAX_ENGINES, type Engine } from './engines';
import { HOUR_MS } from '../hours';
import { EngineSampler } from './sampler';
import { recordUnbilled } from './unbilled';

// Real: PostgreSQL, and a metrics page on a real port that the tests write.
const database = useMeteringDatabase();
const HOUR = Date.parse('2026-03-01T10:00:00.000Z');
const MINUTE_MS = 60_000;
const BACKEND = 'http://gpu:8000/v1';

let page: () => string | null;
let asked = 0;
const server = createServer((_request, response) => {
  asked += 1;
  const text = page();
  response.writeHead(text === null ? 503 : 200).end(text ?? 'starting');
});
let engine: Engine;
let sampler: EngineSampler;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
  engine = { name: url, url, backends: [BACKEND] };
});
beforeEach(async () => {
  await database.query('TRUNCATE metering.backend_hour, metering.engine_hour, metering.engine_sample');
  sampler = new EngineSampler(database.dataSource, () => [engine]);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** Sets the page and samples it at this time. */
async function at(ms: number, generated: number | null, startedSeconds?: number): Promise<void> {
  page = () =>
    generated === null
      ? null
      : `vllm:prompt_tokens_total{model_name="q"} ${generated * 2}\nvllm:generation_tokens_total{model_name="q"} ` +
        `${generated}\n` +
        (startedSeconds ? `process_start_time_seconds ${startedSeconds}\n` : '');
  await sampler.sample(ms);
}

const hours = async (nowMs: number) => (await compareBackends(database.dataSource, { hours: 6 }, nowMs)).data;
const hour = async (hourMs: number, nowMs = HOUR + 3 * HOUR_MS) =>
  (await hours(nowMs)).find((row) => Date.parse(row.hour) === hourMs);

/** Books a request that ran from `fromMs` to `toMs`. */
const booked = (fromMs: number, toMs: number, completionTokens: number, backend = BACKEND) =>
  usageEvent({
    startedAt: new Date(fromMs).toISOString(),
    endedAt: new Date(toMs).toISOString(),
    promptTokens: completionTokens * 2,
    cachedTokens: 0,
    completionTokens,
    backend,
  });
const consume = (...events: object[]) => new UsageConsumer(database.dataSource, ANY_PRICE).consume(events);

it("an hour's work is the growth of the counters between its ends, whatever happens in between", async () => {
  await at(HOUR + 150, 5_000);
  await at(HOUR + MINUTE_MS, 9_000);
  await at(HOUR + 20 * MINUTE_MS, null);
  await at(HOUR + 50 * MINUTE_MS, 40_000);
  await at(HOUR + HOUR_MS + 200, 55_000);
  await consume(booked(HOUR + 1, HOUR + 2, 50_000));
  const row = await hour(HOUR);
  expect(row).toMatchObject({ engine: engine.name, backends: [BACKEND], requests: 1, restarts: 0 });
  expect(row!.generation).toMatchObject({ engine: 50_000, booked: 50_000, drift: 0, verdict: 'agrees' });
  expect(row!.prompt).toMatchObject({ engine: 100_000, booked: 100_000, verdict: 'agrees' });
});

it('a drift of one percent is not reported, and a larger one is', async () => {
  await at(HOUR, 0);
  await at(HOUR + HOUR_MS, 1_000_000);
  await consume(booked(HOUR, HOUR + 1, 990_000));
  expect((await hour(HOUR))!.generation).toMatchObject({ drift: 10_000, driftRatio: 0.01, verdict: 'agrees' });
  await at(HOUR + HOUR_MS + 1, 1_000_001);
  await database.query(`UPDATE metering.engine_hour SET generation_tokens = 1000000 + 1000 WHERE hour = $1`, [
    new Date(HOUR),
  ]);
  expect((await hour(HOUR))!.generation).toMatchObject({ drift: 11_000, verdict: 'drifts' });
});

it("books that exceed the engine's count are a drift below 0", async () => {
  await at(HOUR, 0);
  await at(HOUR + HOUR_MS, 10_000);
  await consume(booked(HOUR, HOUR + 1, 20_000));
  expect((await hour(HOUR))!.generation).toMatchObject({ drift: -10_000, driftRatio: -0.5, verdict: 'drifts' });
});

it('a request that runs over the end of an hour is a drift in neither hour', async () => {
  await at(HOUR, 0);
  // Half of it was generated before the end of the first hour.
  await at(HOUR + HOUR_MS, 30_000);
  await at(HOUR + 2 * HOUR_MS, 60_000);
  await consume(booked(HOUR + 30 * MINUTE_MS, HOUR + 90 * MINUTE_MS, 60_000));
  expect((await hour(HOUR, HOUR + 4 * HOUR_MS))!.generation).toMatchObject({ booked: 0, most: 60_000, drift: 0 });
  expect((await hour(HOUR + HOUR_MS, HOUR + 4 * HOUR_MS))!.generation).toMatchObject({ least: 0, drift: 0 });
});

it('an hour is judged once requests that ran over its end have had their time, and not before', async () => {
  await at(HOUR, 0);
  await at(HOUR + HOUR_MS, 50_000);
  const end = HOUR + HOUR_MS;
  expect((await hour(HOUR, end + JUDGE_AFTER_MS - 1))!.generation).toMatchObject({ verdict: 'running', drift: 0 });
  expect((await hour(HOUR, end + JUDGE_AFTER_MS))!.generation).toMatchObject({ verdict: 'drifts', drift: 50_000 });
});

it('an hour is not judged without a reading at both of its ends', async () => {
  await at(HOUR, 0);
  await at(HOUR + 59 * MINUTE_MS, 1_000);
  await at(HOUR + 62 * MINUTE_MS, 60_000);
  await at(HOUR + 2 * HOUR_MS + MINUTE_MS, null);
  const verdicts = await hours(HOUR + 5 * HOUR_MS);
  expect(verdicts.map(({ generation }) => generation.verdict)).toEqual(Array(3).fill('not_observed'));
});

it('work of hours without a reading belongs to none, however near to its beginning an hour is read again', async () => {
  await at(HOUR, 0);
  await at(HOUR + 59 * MINUTE_MS, 40_000);
  await at(HOUR + 2 * HOUR_MS + 200, 900_000);
  await at(HOUR + 3 * HOUR_MS, 950_000);
  await consume(booked(HOUR + 2 * HOUR_MS + 300, HOUR + 3 * HOUR_MS - 1, 50_000));
  const rows = await hours(HOUR + 4 * HOUR_MS);
  expect(
    rows.map(({ hour, generation: { engine, drift, verdict } }) => [Date.parse(hour) - HOUR, engine, drift, verdict]),
  ).toEqual([
    [3 * HOUR_MS, 0, 0, 'running'],
    [2 * HOUR_MS, 50_000, 0, 'agrees'],
    [0, 40_000, 0, 'not_observed'],
  ]);
});

describe('an engine that restarts', () => {
  it('is recognised by counters that fell, and then a count below the books proves nothing', async () => {
    await at(HOUR, 1_000_000);
    await at(HOUR + 30 * MINUTE_MS, 1_020_000);
    await at(HOUR + 31 * MINUTE_MS, 5_000);
    await at(HOUR + HOUR_MS, 25_000);
    await consume(booked(HOUR, HOUR + 1, 60_000));
    const row = await hour(HOUR);
    expect(row).toMatchObject({ restarts: 1, generation: { engine: 45_000, drift: 0, verdict: 'agrees' } });
  });

  it('is recognised by its start time if its counters have outgrown the old ones', async () => {
    await at(HOUR, 1_000, 1_700_000_000);
    await at(HOUR + HOUR_MS, 60_000, 1_700_003_000);
    expect(await hour(HOUR)).toMatchObject({ restarts: 1, generation: { engine: 60_000 } });
  });

  it('is still reported if it worked more than the books say', async () => {
    await at(HOUR, 1_000_000);
    await at(HOUR + HOUR_MS, 50_000);
    await consume(booked(HOUR, HOUR + 1, 20_000));
    expect((await hour(HOUR))!.generation).toMatchObject({ drift: 30_000, verdict: 'drifts' });
  });
});

it('pages have whole hours, however many engines one has: their addresses may have changed within it', async () => {
  const rows = { [HOUR]: 3, [HOUR + HOUR_MS]: 2 * MAX_ENGINES, [HOUR + 2 * HOUR_MS]: 1 };
  for (const [ms, count] of Object.entries(rows))
    await database.query(
      `INSERT INTO metering.engine_hour
       SELECT $1, 'http://gpu-' || n, '{}', true, NULL, NULL, 1, 1, 0 FROM generate_series(1, $2) AS n`,
      [new Date(Number(ms)), count],
    );
  const seen: string[] = [];
  for (let before: string | null = null; ;) {
    const asked = { hours: 6, ...(before !== null && { before }) };
    const page = await compareBackends(database.dataSource, asked, HOUR + 3 * HOUR_MS);
    seen.push(...page.data.map(({ hour: at, engine: name }) => `${at} ${name}`));
    before = page.nextCursor;
    if (before === null) break;
  }
  expect([seen.length, new Set(seen).size]).toEqual([2 * MAX_ENGINES + 4, 2 * MAX_ENGINES + 4]);
});

it.each(['2026-W45', '-271821-04-20T00:00:00.000Z', 'now', 5])('hours before %p are refused', async (before) => {
  const asked = compareBackends(database.dataSource, { hours: 1, before: before as string });
  await expect(asked).rejects.toMatchObject({ code: 'invalid_parameter' });
});

describe('work that is not charged', () => {
  afterEach(() => database.query('TRUNCATE metering.backend_unbilled'));

  it('explains a count above the books, and leaves the hour unclear', async () => {
    await at(HOUR, 0);
    await at(HOUR + HOUR_MS, 60_000);
    await consume(booked(HOUR, HOUR + 1, 40_000));
    const told = (promptTokens: number, completionTokens: number) =>
      database.query(`INSERT INTO metering.backend_unbilled VALUES (gen_random_uuid(), $1, $2, $3, $4)`, [
        new Date(HOUR),
        BACKEND,
        promptTokens,
        completionTokens,
      ]);
    await told(20_000, 15_000);
    expect((await hour(HOUR))!.generation).toMatchObject({ unbilled: 15_000, drift: 5_000, verdict: 'drifts' });
    await told(0, 10_000);
    expect((await hour(HOUR))!.generation).toMatchObject({ drift: 0, verdict: 'unclear' });
  });

  it('counts once when a report is redelivered', async () => {
    const now = new Date(Date.now() - (Date.now() % HOUR_MS)).toISOString();
    const line = { backend: BACKEND, hour: now, promptTokens: 7, completionTokens: 3 };
    for (let i = 0; i < 2; i++) await recordUnbilled(database.dataSource, { id: 'msg_2', work: [line] });
    expect(await database.query('SELECT prompt_tokens::int AS n FROM metering.backend_unbilled')).toEqual([{ n: 7 }]);
    await recordUnbilled(database.dataSource, { id: 'msg_3', work: [line] });
    expect(await database.query('SELECT count(*)::int AS n FROM metering.backend_unbilled')).toEqual([{ n: 2 }]);
    const refused = { code: 'invalid_parameter' };
    for (const hour of ['2026-13-01T00:00:00.000Z', '2026-02-30T00:00:00.000Z', '0000-01-01T00:00:00.000Z'])
      await expect(
        recordUnbilled(database.dataSource, { id: 'msg_4', work: [{ ...line, hour }] }),
      ).rejects.toMatchObject(refused);
    for (const work of [[{ ...line, completionTokens: -1 }], 'x'])
      await expect(recordUnbilled(database.dataSource, { id: 'msg_4', work: work as never })).rejects.toMatchObject(
        refused,
      );
    for (const id of ['msg_\0', 'x'.repeat(65)])
      await expect(recordUnbilled(database.dataSource, { id, work: [line] })).rejects.toMatchObject(refused);
  });

  it('may belong to any engine if its event names no backend, e.g. after the death of a gateway', async () => {
    await at(HOUR, 0);
    await at(HOUR + HOUR_MS, 60_000);
    await consume({ ...booked(HOUR, HOUR + 1, 60_000), backend: undefined });
    expect((await hour(HOUR))!.generation).toMatchObject({ booked: 0, unbilled: 60_000, drift: 0, verdict: 'unclear' });
  });
});

it('a stop does not wait for a page that hangs', async () => {
  const hanging = createServer(() => {});
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/metrics`;
  const waiting = new EngineSampler(database.dataSource, () => [{ name: url, url, backends: [BACKEND] }]);
  const connected = new Promise((resolve) => hanging.once('connection', resolve));
  waiting.onApplicationBootstrap();
  await connected;
  await waiting.beforeApplicationShutdown();
  // Nobody connects to it any more.
  await new Promise((resolve) => hanging.close(resolve));
});

it('one of several replicas samples when all try at once', async () => {
  await at(HOUR, 0);
  const before = asked;
  const others = [1, 2, 3].map(() => new EngineSampler(database.dataSource, () => [engine]));
  const rounds = await Promise.all(others.map((one) => one.sample(HOUR + MINUTE_MS)));
  expect(rounds.filter(Boolean)).toHaveLength(asked - before);
  expect(rounds).toContain(true);
});

it('sums by backend equal the events, and an invalid backend name does not prevent a charge', async () => {
  const events = [1, 2, 3].map((n) => booked(HOUR, HOUR + 1, n * 10));
  await consume(...events);
  await consume(
    ...events,
    { ...booked(HOUR, HOUR + 1, 5), backend: 'x'.repeat(300) },
    booked(HOUR, HOUR + 1, 7, 'b\\n'),
  );
  const sums = await database.query<{ backend: string; requests: number; tokens: number }>(
    `SELECT backend, sum(requests)::int AS requests, sum(completion_tokens)::int AS tokens
     FROM metering.backend_hour
     GROUP BY 1
     ORDER BY 1`,
  );
  expect(sums).toEqual([
    { backend: 'b\\n', requests: 1, tokens: 7 },
    { backend: BACKEND, requests: 3, tokens: 60 },
    { backend: 'unknown', requests: 1, tokens: 5 },
  ]);
  const [row] = await database.query(`SELECT backend FROM metering.usage_event WHERE completion_tokens = 7`);
  expect(row).toEqual({ backend: 'b\\n' });
});
