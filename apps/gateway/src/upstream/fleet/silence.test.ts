import fs from 'node:fs';
import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { CatalogModel } from '../../catalog/catalog';
import {
  type Answer,
  backend,
  closeAll,
  type CountingBackend,
  exchangeOf,
  modelWith,
  upstreamWith,
  useJumpingClock,
  wholeRelay,
} from '../exchange.fixture';
import type { PlainRelay } from '../exchange/plain-answer';

const LEVELS = { info: 30, warn: 40 };
const CALLS = 200;
/** Calls whose clients leave before a backend counts as silent. */
const LEFT_IN_A_ROW = 5;
const upstream = upstreamWith({});
const jump = useJumpingClock();
afterAll(closeAll);

/** The clients of the calls that no backend will answer. */
let clients: PlainRelay<Buffer>[] = [];
beforeEach(() => (clients = []));
const well: Answer = (_, response) => void response.end('yes');
/** Sends nothing, so each client leaves. */
const silent: Answer = () => clients.shift()!.clientClosed();

/** One call after the other, each until it has its answer or its client has left. */
async function callOneByOne(model: CatalogModel, calls: number): Promise<void> {
  for (let n = 0; n < calls; n++) {
    const relay = wholeRelay();
    clients = [relay];
    await relay.run(exchangeOf(model, relay, upstream));
    await idle(model);
  }
}

it('a backend that sends only the head of its answers is silent, too', async () => {
  jump(0);
  const one = await backend((_, response) => response.flushHeaders());
  const model = modelWith([one, await backend(well)]);
  for (let n = 0; n < CALLS; n++) {
    const relay = wholeRelay();
    jest.spyOn(relay, 'onHead').mockImplementation(() => setImmediate(() => relay.clientClosed()));
    await relay.run(exchangeOf(model, relay, upstream));
    await idle(model);
  }
  expect(one.asked).toBe(LEFT_IN_A_ROW);
});

const managedOf = (model: CatalogModel) => upstream.fleet.poolOf(model).backends;
const idle = (model: CatalogModel) =>
  eventually(() => expect(managedOf(model).map(({ engine }) => engine.inFlight)).toEqual(model.backends.map(() => 0)));

describe('a backend that sends no byte before its clients leave', () => {
  let one: CountingBackend;
  let answer: Answer;
  beforeEach(async () => {
    jump(0);
    answer = silent;
    one = await backend((request, response) => answer(request, response));
  });

  it.each([
    ['one that answers', 1, 1],
    ['one that answers and has a tenth of its weight', 10, 1],
    ['three that answer', 1, 3],
  ])('gets five calls beside %s', async (_, weight, others) => {
    one.weight = weight;
    const good = await Promise.all(Array.from({ length: others }, () => backend(well)));
    await callOneByOne(modelWith([one, ...good]), CALLS);
    expect(one.asked).toBe(LEFT_IN_A_ROW);
  });

  it('gets one call every 10 s, and its full share after its first byte', async () => {
    one.weight = 1_000;
    const model = modelWith([one, await backend(well)]);
    await callOneByOne(model, CALLS);
    for (let n = 1; n <= 3; n++) {
      jump(10_000);
      await callOneByOne(model, CALLS / 4);
      expect(one.asked).toBe(LEFT_IN_A_ROW + n);
    }
    answer = well;
    jump(10_000);
    await callOneByOne(model, CALLS);
    expect(one.asked).toBeGreaterThan(CALLS / 2);
  });

  it('keeps its circuit breaker closed, and is asked if the others are full', async () => {
    const full = await backend(() => {});
    full.maxConcurrency = 1;
    const model = modelWith([one, full]);
    managedOf(model)[1]!.engine.inFlight = 1;
    for (let n = 0; n < 20; n++) {
      const relay = wholeRelay();
      clients = [relay];
      expect((await relay.run(exchangeOf(model, relay, upstream))).kind).toBe('client_closed');
    }
    expect([one.asked, managedOf(model)[0]!.breaker.isOpen]).toEqual([20, false]);
  });
});

/** What the lines say that the log gets from now on. */
function logLines(): object[] {
  const lines: object[] = [];
  jest.spyOn(fs, 'writeSync').mockImplementation((_: number, text: unknown) => {
    const { level, component, backend: url, model, msg } = JSON.parse(String(text)) as Record<string, unknown>;
    lines.push({ level, component, backend: url, model, msg });
    return Buffer.byteLength(String(text));
  });
  return lines;
}

describe('what an operator sees of a silent backend', () => {
  afterEach(() => jest.restoreAllMocks());
  const silentModels = async (url: string) => {
    const { values } = await metrics.getSingleMetric('tollgate_backend_silent_models')!.get();
    return values.find(({ labels }) => labels['backend'] === url)?.value;
  };

  it('is a gauge, a warning when it begins, and a line when it ends', async () => {
    jump(0);
    const lines = logLines();
    let answer = silent;
    const one = await backend((request, response) => answer(request, response));
    const model = modelWith([one, await backend(well)]);
    upstream.fleet.follow([model]);
    const about = { component: 'gateway', backend: one.name, model: managedOf(model)[0]!.model };
    expect(await silentModels(one.name)).toBe(0);
    await callOneByOne(model, CALLS);
    expect(await silentModels(one.name)).toBe(1);
    // The call that it gets every 10 s neither ends its silence nor repeats the warning.
    jump(10_000);
    expect(await silentModels(one.name)).toBe(1);
    await callOneByOne(model, CALLS / 4);
    expect(lines).toEqual([{ ...about, level: LEVELS.warn, msg: expect.stringContaining('is silent') }]);

    answer = well;
    jump(10_000);
    await callOneByOne(model, CALLS / 4);
    expect(await silentModels(one.name)).toBe(0);
    expect(lines.slice(1)).toEqual([{ ...about, level: LEVELS.info, msg: expect.stringContaining('answers again') }]);
  });

  it('counts only while the backend may get calls', async () => {
    jump(0);
    const one = await backend(silent);
    const model = modelWith([one, await backend(well)]);
    upstream.fleet.follow([model]);
    await callOneByOne(model, CALLS);
    upstream.fleet.drainOnly(new Set([one.name]));
    expect(await silentModels(one.name)).toBe(0);
    upstream.fleet.drainOnly(new Set());
    expect(await silentModels(one.name)).toBe(1);
    upstream.fleet.follow([{ ...model, backends: [{ ...one, weight: 0 }] }]);
    expect(await silentModels(one.name)).toBe(0);
  });
});

it('clients that leave change nothing between backends that are all silent, nor at one that answers others', async () => {
  jump(0);
  const all = await Promise.all([backend(silent), backend(silent)]);
  await callOneByOne(modelWith(all), CALLS);
  for (const { asked } of all) expect(asked).toBeGreaterThan(CALLS / 4);

  // Four of five calls lose their client.
  let calls = 0;
  const busy = await backend((request, response) => ((calls += 1) % 5 ? silent : well)(request, response));
  const good = await backend(well);
  await callOneByOne(modelWith([busy, good]), CALLS);
  expect(busy.asked).toBeGreaterThan(CALLS / 4);
});
