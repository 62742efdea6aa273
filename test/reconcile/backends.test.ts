import { type BackendHour, newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { DataSource } from 'typeorm';
import { compareBackends, JUDGE_AFTER_MS } from '../../apps/metering/src/backends/compare';
import { openMeteringDatabase } from '../../apps/metering/src/database';
import { EngineSampler } from '../../apps/metering/src/backends/sampler';
import { startSimulator } from '../../apps/simulator/src';
import { send } from '../surfaces/ask';
import { OPERATOR_SECRET, useServices } from '../surfaces/services';
import { runTollgate, useDataDirectory } from '../surfaces/tollgate-process';

const HOUR_MS = 3_600_000;
const hourOf = (ms: number) => ms - (ms % HOUR_MS);

// Real: the gateway, metering and billing on PostgreSQL, and the simulator as the engine with its own counters. Only
// the clock of the sampler is a fake: an hour is sampled at its beginning and its end.
const services = useServices();
const directory = useDataDirectory(services);
let dataSource: DataSource;
let sampler: EngineSampler;
let key: string;
beforeAll(async () => {
  dataSource = await openMeteringDatabase(services.database.url);
  const page = new URL('/metrics', services.simulator.url).href;
  sampler = new EngineSampler(dataSource, () => [{ name: page, url: page, backends: ['simulator:'] }]);
  const { tenantId } = await services.tenant();
  const operator = (path: string, body: object) =>
    send(`${services.operatorUrl}/_operator/v1${path}`, { token: OPERATOR_SECRET, body });
  await operator(`/tenants/${tenantId}/credit`, { amountCents: 100_000, ref: newId('evt') });
  key = (await operator(`/tenants/${tenantId}/keys`, { name: 'k' })).json.data.key as string;
  await eventually(async () => expect((await chat({})).status).toBe(200));
});
afterAll(() => dataSource.destroy());

const PROMPT = 'the gateway counts what the engine counts '.repeat(40);

const chat = (simulator: object, more: object = {}, signal?: AbortSignal) =>
  fetch(`${services.publicUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: PROMPT }], simulator, ...more }),
    ...(signal && { signal }),
  });

const answered = async (count: number, simulator: object, more: object = {}) => {
  for (let i = 0; i < count; i++) expect((await (await chat(simulator, more)).text()).length).toBeGreaterThan(0);
};

/** Reads this many events of a stream, then leaves. */
async function left(afterEvents: number, simulator: object): Promise<void> {
  const leaving = new AbortController();
  const response = await chat(simulator, { stream: true }, leaving.signal);
  let events = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    events += Buffer.from(chunk).toString().split('\n\n').length - 1;
    if (events >= afterEvents) break;
  }
  leaving.abort();
}

/** Waits until all requests have ended at the simulator and in the gateway, and are in metering. */
async function told(): Promise<void> {
  await eventually(() => expect(services.simulator.stats().openNow).toBe(0));
  await eventually(async () => {
    const tenants = await services.database.query<{ pending: string }>(
      'SELECT count(*) AS pending FROM admission.hold',
    );
    expect(Number(tenants[0]!.pending)).toBe(0);
  });
  await services.flushUsage();
}

/**
 * The comparison of the hour in which this traffic ran. Repeats the traffic if the hour ended during it.
 */
async function compared(traffic: () => Promise<void>): Promise<BackendHour> {
  for (;;) {
    await told();
    await services.database.query(
      'TRUNCATE metering.backend_hour, metering.backend_unbilled, metering.engine_hour, metering.engine_sample',
    );
    const hour = hourOf(Date.now());
    await sampler.sample(hour);
    await traffic();
    await told();
    if (hourOf(Date.now()) !== hour) continue;
    await sampler.sample(hour + HOUR_MS);
    const { data } = await compareBackends(dataSource, { hours: 2 }, hour + HOUR_MS + JUDGE_AFTER_MS);
    return data.find((row) => Date.parse(row.hour) === hour)!;
  }
}

const SLOW = { tokensPerSecond: 200, answerTokens: 2_000 };

it('honest traffic agrees within one percent: answers, streams, abandoned streams, refusals and failures', async () => {
  const row = await compared(async () => {
    await answered(30, { answerTokens: 300 });
    await answered(20, { answerTokens: 300 }, { stream: true });
    await answered(2, { faults: [{ kind: 'status', status: 400 }] });
    await answered(2, { faults: [{ kind: 'status', status: 503 }] });
    await Promise.all([1, 2, 3].map(() => left(20, SLOW)));
  });
  const { prompt, generation } = row;
  expect([row.requests, prompt.verdict, prompt.drift, generation.verdict, generation.drift]).toEqual([
    53,
    'agrees',
    0,
    'agrees',
    0,
  ]);
  expect(prompt.engine).toBe(prompt.booked);
  // The tokens that each of the three backends generated until it noticed that its client had left.
  expect(generation.engine).toBeGreaterThanOrEqual(generation.booked);
  expect(generation.engine).toBeLessThanOrEqual(generation.booked * 1.01);
  expect(generation.booked).toBeGreaterThan(15_000);
});

it('abandoned plain answers are reported as unclear and not as a drift', async () => {
  const row = await compared(async () => {
    await answered(5, { answerTokens: 300 });
    for (let i = 0; i < 2; i++) {
      const before = services.simulator.stats().requestsStarted;
      const leaving = new AbortController();
      const asked = chat({ tokensPerSecond: 4_000, answerTokens: 3_000 }, { max_tokens: 3_000 }, leaving.signal);
      await eventually(async () => expect(services.simulator.stats().requestsStarted).toBeGreaterThan(before));
      leaving.abort();
      await expect(asked).rejects.toThrow();
    }
  });
  expect(row.requests).toBe(5);
  expect(row.generation).toMatchObject({ drift: 0, booked: 1_500, unbilled: 6_000 });
});

it('a backend that reports only six tenths of its tokens is named with the missing amount', async () => {
  const row = await compared(() => answered(20, { answerTokens: 300, faults: [{ kind: 'overrun', factor: 0.6 }] }));
  for (const tokens of [row.prompt, row.generation]) {
    expect(tokens.verdict).toBe('drifts');
    expect(tokens.drift).toBe(tokens.engine - tokens.booked);
    expect(tokens.driftRatio).toBeCloseTo(0.4, 2);
  }
  expect(row.generation).toMatchObject({ engine: 6_000, booked: 3_600, drift: 2_400 });

  // The output for an operator some time after the hour.
  await services.database.query(`
    UPDATE metering.backend_hour SET hour = hour - interval '2 hours';
    UPDATE metering.engine_hour SET hour = hour - interval '2 hours', first_at = first_at - interval '2 hours',
      last_at = last_at - interval '2 hours' WHERE first_at < last_at`);
  const tollgate = (...args: string[]) => runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
  const { code, stdout } = await tollgate('reconcile', '--backends', '--hours', '4');
  expect(code).toBe(1);
  expect(stdout).toMatch(/^simulator: +\d{4}-\d\d-\d\d \d\d +generation +6000 +3600 +0 +2400 \(40\.00 %\) +DRIFTS$/m);
  expect(stdout).toContain('THE ENGINES AND THE BOOKS DRIFT APART in 2 places');
  const json = await tollgate('reconcile', '--backends', '--json');
  expect([json.code, (JSON.parse(json.stdout) as { ok: boolean }).ok]).toEqual([1, false]);
  expect((await tollgate('reconcile', '--hours', '2')).code).toBe(2);
  const scraped = await (await fetch(`${services.operatorUrl}/metrics`)).text();
  expect(scraped).toMatch(/^tollgate_backend_drift_ratio\{backend="simulator:",kind="generation"\} 0\.4$/m);
});

it('a restarted engine is no drift, and the hour reports it', async () => {
  const row = await compared(async () => {
    await answered(10, { answerTokens: 300 });
    await sampler.sample(hourOf(Date.now()) + HOUR_MS / 2);
    // The counters are not read again before it ends.
    await answered(2, { answerTokens: 300 });
    await told();
    const { port } = new URL(services.simulator.url);
    await services.simulator.close();
    services.simulator = await startSimulator({ port: Number(port) });
    await answered(5, { answerTokens: 300 });
  });
  expect(row).toMatchObject({ restarts: 1, requests: 17 });
  expect(row.generation).toMatchObject({ booked: 5_100, engine: 4_500, drift: 0, verdict: 'agrees' });
});
