import { MAX_LINES_PER_WINDOW } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import fs from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { CatalogModel } from '../../catalog/catalog';
import { fallbacks } from '../fleet/backend-metrics';
import {
  type Answer,
  backend,
  backendAt,
  closeAll,
  closedOrigin,
  exchangeOf,
  modelWith,
  UNLIMITED,
  upstreamWith,
  wholeRelay,
} from '../exchange.fixture';
import { PlainRelay } from './plain-answer';
import { RESERVE } from '../fleet/retry-budget';

afterAll(closeAll);

const upstream = upstreamWith({});
const well: Answer = (_, response) => void response.end('yes');
const answering = (status: number): Answer => {
  return (_, response) => void response.writeHead(status).end('{}');
};
const reset: Answer = (request) => void request.socket.destroy();
const busy = (seconds: number): Answer => {
  return (_, response) => void response.writeHead(429, { 'retry-after': String(seconds) }).end('{}');
};
const HOUR_MS = 3_600_000;

/** Uses up the retry budget of a model, so that time brings back nothing for an hour. */
function useUpBudget(model: CatalogModel) {
  const { budget } = upstream.fleet.poolOf(model);
  const nowMs = performance.now();
  budget.take(nowMs + HOUR_MS);
  while (budget.take(nowMs));
}

/** The kind of the answer, and the models that were asked instead of the first. */
async function ask(model: CatalogModel, fallbacks: CatalogModel[]) {
  const fellTo: string[] = [];
  const relay = new PlainRelay<Buffer>(
    (answer) => Promise.resolve({ kind: 'usable', answer }),
    UNLIMITED,
    undefined,
    ({ id }) => fellTo.push(id),
  );
  const exchange = exchangeOf(model, relay, upstream, fallbacks);
  const answer = await relay.run(exchange);
  const failure = answer.kind === 'failed' ? { failure: answer.failure } : {};
  return { kind: answer.kind, fellTo, served: exchange.model.id, ...failure };
}

describe('the fallback of a model', () => {
  it.each([
    ['fails', answering(500)],
    ['is busy', answering(429)],
    ['is too late', answering(504)],
    ['breaks off', reset],
    ['does not serve us', answering(401)],
  ])('serves if the only backend %s', async (_, failing) => {
    const [bad, good] = await Promise.all([backend(failing), backend(well)]);
    const [model, other] = [modelWith([bad]), modelWith([good])];
    expect(await ask(model, [other])).toEqual({ kind: 'answer', fellTo: [other.id], served: other.id });
    expect([bad.asked, good.asked]).toEqual([1, 1]);
  });

  it.each([400, 413, 422])('is not asked if a backend refuses the request with %i', async (status) => {
    const [bad, good] = await Promise.all([backend(answering(status)), backend(well)]);
    const model = modelWith([bad]);
    expect(await ask(model, [modelWith([good])])).toMatchObject({ kind: 'failed', fellTo: [], served: model.id });
    expect(good.asked).toBe(0);
  });

  it.each([400, 413, 422, 451])('is followed by the next one if it refuses the request with %i', async (status) => {
    const all = await Promise.all([backend(answering(500)), backend(answering(status)), backend(well)]);
    const [model, strict, good] = all.map((one) => modelWith([one]));
    expect(await ask(model!, [strict!, good!])).toMatchObject({ kind: 'answer', served: good!.id });
    // Alone, it does not make the request a fault of the client.
    expect(await ask(model!, [strict!])).toMatchObject({ failure: { kind: 'failed', status: 500 } });
    const [gone, other] = [modelWith([backendAt(await closedOrigin())]), modelWith([all[1]])];
    await ask(gone, []);
    expect(await ask(gone, [other])).toMatchObject({ fellTo: [other.id], failure: { kind: 'busy' } });
  });

  it('is not asked while a backend of the model can serve', async () => {
    const [bad, good, other] = await Promise.all([backend(answering(500)), backend(well), backend(well)]);
    const model = modelWith([bad, good]);
    for (let n = 0; n < 20; n++) expect((await ask(model, [modelWith([other])])).kind).toBe('answer');
    expect(other.asked).toBe(0);
  });

  it('is asked at once, and for every request, while no backend of the model works', async () => {
    const good = await backend(well);
    const model = modelWith([backendAt(await closedOrigin()), backendAt(await closedOrigin(), '/v2')]);
    const other = modelWith([good]);
    const calls = 100;
    let lines = 0;
    const spy = jest.spyOn(fs, 'writeSync').mockImplementation((_fd: number, text: string) => {
      if (text.includes('asking its fallback')) lines += 1;
      return Buffer.byteLength(text);
    });
    try {
      for (let n = 0; n < calls; n++) expect((await ask(model, [other])).served).toBe(other.id);
    } finally {
      spy.mockRestore();
    }
    expect(good.asked).toBe(calls);
    // An outage fills no log. The metric counts every request.
    expect(lines).toBeLessThanOrEqual(MAX_LINES_PER_WINDOW);
    const counted = (await fallbacks.get()).values.find(({ labels }) => labels.model === model.id);
    expect(counted).toMatchObject({ value: calls, labels: { fallback: other.id } });
  });

  it('is no longer asked once a backend of the model works again', async () => {
    let now = answering(500);
    const [own, good] = await Promise.all([backend((request, response) => now(request, response)), backend(well)]);
    const [model, other] = [modelWith([own]), modelWith([good])];
    // Until its circuit breaker is open.
    while (own.asked < 5) await ask(model, [other]);
    now = well;
    await eventually(async () => expect((await ask(model, [other])).served).toBe(model.id), { timeoutMs: 60_000 });
    const before = good.asked;
    for (let n = 0; n < 20; n++) expect((await ask(model, [other])).served).toBe(model.id);
    expect(good.asked).toBe(before);
  });

  it('is followed by the next one, and the failure of the model is the answer', async () => {
    const failing = [answering(429), reset, answering(401), well];
    const all = await Promise.all(failing.map((one) => backend(one)));
    const [model, first, second, third] = all.map((one) => modelWith([one]));
    expect(await ask(model!, [first!, second!, third!])).toMatchObject({ kind: 'answer', served: third!.id });
    expect(all.map(({ asked }) => asked)).toEqual([1, 1, 1, 1]);
    const alone = await ask(model!, [first!, second!]);
    expect(alone).toMatchObject({ failure: { kind: 'busy' }, fellTo: [first!.id, second!.id] });
  });

  it('gets one attempt once a backend may have begun the request', async () => {
    const others = await Promise.all([backend(answering(500)), backend(answering(500))]);
    const bad = await backend(reset);
    expect((await ask(modelWith([bad]), [modelWith(others)])).kind).toBe('failed');
    expect(others[0].asked + others[1].asked).toBe(1);
  });

  it('is not asked once two backends may have begun the request, whatever models they serve', async () => {
    const all = await Promise.all([reset, reset, well].map((one) => backend(one)));
    const [model, first, second] = all.map((one) => modelWith([one]));
    expect(await ask(model!, [first!, second!])).toMatchObject({ kind: 'failed', fellTo: [first!.id] });
    const both = modelWith([all[0]!, all[1]!]);
    expect(await ask(both, [second!])).toMatchObject({ kind: 'failed', fellTo: [] });
    expect(all.map(({ asked }) => asked)).toEqual([2, 2, 0]);
  });

  it('is asked within the retry budget of the model once a backend may have begun the request', async () => {
    const [bad, none, good] = await Promise.all([reset, answering(429), well].map((one) => backend(one)));
    const [model, other] = [modelWith([bad!]), modelWith([good!])];
    useUpBudget(model);
    expect(await ask(model, [other])).toMatchObject({ kind: 'failed', fellTo: [] });
    expect([bad!.asked, good!.asked]).toEqual([1, 0]);
    const busyModel = modelWith([none!]);
    useUpBudget(busyModel);
    expect(await ask(busyModel, [other])).toMatchObject({ kind: 'answer', fellTo: [other.id] });
  });

  it('takes one attempt from the budget, also if another backend of the model was to be asked', async () => {
    const [bad, good] = await Promise.all([backend(reset), backend(well)]);
    const gone = backendAt(await closedOrigin());
    const [model, other] = [modelWith([bad, gone]), modelWith([good])];
    await ask(modelWith([gone]), []);
    const isOpen = () => upstream.fleet.poolOf(model).backends[1]!.breaker.isOpen;
    expect(isOpen()).toBe(true);
    const nowMs = performance.now();
    for (let n = 1; n < RESERVE; n++) upstream.fleet.poolOf(model).budget.take(nowMs);
    expect(await ask(model, [other])).toMatchObject({ kind: 'answer', fellTo: [other.id] });
  });

  it('whose backends cannot be asked leaves the failure of the model', async () => {
    const bad = await backend(answering(500));
    const drained = modelWith([{ ...(await backend(well)), weight: 0 }]);
    const { failure } = await ask(modelWith([bad]), [drained]);
    expect(failure).toMatchObject({ kind: 'failed', status: 500 });
  });

  it('leaves the soonest Retry-After of all backends of all models', async () => {
    const [soon, late] = await Promise.all([backend(busy(40)), backend(busy(50))]);
    const [model, other] = [modelWith([soon]), modelWith([late])];
    for (const one of [model, other]) await ask(one, []);
    // Both rest, so that only the last one is asked again.
    const { failure } = (await ask(model, [other])) as { failure: { kind: string; retryAfterSeconds: number } };
    expect(failure.kind).toBe('busy');
    expect(failure.retryAfterSeconds).toBeLessThanOrEqual(40);
    expect(failure.retryAfterSeconds).toBeGreaterThan(1);
  });

  it.each([
    ['fails', answering(500)],
    ['breaks off', reset],
    ['refuses', answering(400)],
  ])('that %s leaves the Retry-After of a model that was only busy', async (_, failing) => {
    const [resting, bad] = await Promise.all([backend(busy(40)), backend(failing)]);
    const { failure } = await ask(modelWith([resting]), [modelWith([bad])]);
    expect(failure).toEqual({ kind: 'busy', retryAfterSeconds: 40 });
  });

  it('that is busy leaves the failure of a model that was not', async () => {
    const [bad, resting] = await Promise.all([backend(answering(500)), backend(busy(40))]);
    const { failure } = await ask(modelWith([bad]), [modelWith([resting])]);
    expect(failure).toMatchObject({ kind: 'failed', status: 500 });
  });

  it('that breaks off after its first output gives its own failure, and takes nothing from the budget', async () => {
    const cut: Answer = (_, response) => {
      response.writeHead(200).write('a part');
      setImmediate(() => response.destroy());
    };
    const [resting, broken, good] = await Promise.all([backend(busy(40)), backend(cut), backend(well)]);
    const [model, other, third] = [modelWith([resting]), modelWith([broken, await backend(cut)]), modelWith([good])];
    const takes = jest.spyOn(upstream.fleet.poolOf(other).budget, 'take');
    const relay = wholeRelay();
    relay.mayRestart = () => false;
    const answer = await relay.run(exchangeOf(model, relay, upstream, [other, third]));
    expect(answer).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
    expect(takes).not.toHaveBeenCalled();
    expect(good.asked).toBe(0);
  });

  it('adds three attempts, of which the first ones and the last one are listed', async () => {
    const backends = await Promise.all(Array.from({ length: 12 }, () => backend(answering(429))));
    const models = [0, 3, 6, 9].map((n) => modelWith(backends.slice(n, n + 3)));
    const relay = wholeRelay();
    const exchange = exchangeOf(models[0]!, relay, upstream, models.slice(1));
    expect(await relay.run(exchange)).toMatchObject({ failure: { kind: 'busy' } });
    expect(backends.map(({ asked }) => asked)).toEqual(backends.map(() => 1));
    const nth = exchange.record.failed!.map((failed) => backends.findIndex(({ name }) => name === failed.backend));
    expect(nth.map((n) => Math.floor(n / 3))).toEqual([0, 0, 0, 3]);
  });

  it('gets one attempt too if the last of several attempts at the model may have begun', async () => {
    const first = await Promise.all([429, 429, 500].map((status) => backend(answering(status))));
    first.forEach((one, n) => (one.weight = 10 ** (18 - 9 * n)));
    const others = await Promise.all([backend(answering(429)), backend(answering(429))]);
    expect((await ask(modelWith(first), [modelWith(others)])).kind).toBe('failed');
    expect([...first, ...others].map(({ asked }) => asked).slice(0, 3)).toEqual([1, 1, 1]);
    expect(others[0].asked + others[1].asked).toBe(1);
  });

  it('serves what waited for a place at a model whose breaker opens meanwhile', async () => {
    const open: ServerResponse[] = [];
    const [full, good] = await Promise.all([backend((_, response) => void open.push(response)), backend(well)]);
    full.maxConcurrency = 1;
    const model = modelWith([full], { maxRequests: 1, maxWaitMs: 60_000 });
    const other = modelWith([good]);
    const running = wholeRelay();
    const first = running.run(exchangeOf(model, running, upstream));
    const second = ask(model, [other]);
    await eventually(() => expect(open.length).toBe(1));
    const [managed] = upstream.fleet.poolOf(model).backends;
    while (!managed!.breaker.isOpen) managed!.ended('failed', false, performance.now());
    // It stays so, however slow the machine is.
    managed!.breaker['probeAtMs'] = Infinity;
    open[0]!.end('yes');
    expect((await first).kind).toBe('answer');
    await eventually(() => expect(good.asked + full.asked).toBe(2));
    expect([full.asked, good.asked]).toEqual([1, 1]);
    expect(await second).toMatchObject({ kind: 'answer', served: other.id });
  });

  it('serves what finds no place at the model', async () => {
    const [full, good] = await Promise.all([backend(() => {}), backend(well)]);
    full.maxConcurrency = 1;
    const [model, other] = [modelWith([full]), modelWith([good])];
    const waiting = wholeRelay();
    const first = waiting.run(exchangeOf(model, waiting, upstream));
    expect(await ask(model, [other])).toMatchObject({ kind: 'answer', served: other.id });
    // A place may be free at any time, whatever the fallback says.
    const resting = modelWith([await backend(busy(50))]);
    expect((await ask(model, [resting])).failure).toEqual({ kind: 'busy', retryAfterSeconds: 1 });
    waiting.clientClosed();
    expect((await first).kind).toBe('client_closed');
  });
});
