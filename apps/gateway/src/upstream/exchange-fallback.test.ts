import type { CatalogModel } from '../catalog/catalog';
import {
  type Answer,
  backend,
  backendAt,
  closeAll,
  closedOrigin,
  exchangeOf,
  modelWith,
  upstreamWith,
} from './exchange.fixture';
import { PlainRelay } from './plain-answer';

afterAll(closeAll);

const upstream = upstreamWith({});
const well: Answer = (_, response) => void response.end('yes');
const answering = (status: number): Answer => {
  return (_, response) => void response.writeHead(status).end('{}');
};
const reset: Answer = (request) => void request.socket.destroy();

/** The kind of the answer, and the models that were asked instead of the first. */
async function ask(model: CatalogModel, fallbacks: CatalogModel[]) {
  const fellTo: string[] = [];
  const relay = new PlainRelay<Buffer>(
    (answer) => ({ kind: 'usable', answer }),
    undefined,
    ({ id }) => fellTo.push(id),
  );
  const exchange = exchangeOf(model, relay, upstream, fallbacks);
  const { kind } = await relay.run(exchange);
  return { kind, fellTo, served: exchange.model.id };
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
    expect(await ask(model, [modelWith([good])])).toEqual({ kind: 'failed', fellTo: [], served: model.id });
    expect(good.asked).toBe(0);
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
    for (let n = 0; n < calls; n++) expect((await ask(model, [other])).served).toBe(other.id);
    expect(good.asked).toBe(calls);
  });

  it('is followed by the next one, and the last failure is the answer', async () => {
    const all = await Promise.all([backend(reset), backend(reset), backend(answering(503)), backend(well)]);
    const [model, first, second, third] = all.map((one) => modelWith([one]));
    expect(await ask(model!, [first!, second!, third!])).toMatchObject({ kind: 'answer', served: third!.id });
    expect(all.map(({ asked }) => asked)).toEqual([1, 1, 1, 1]);
    const alone = await ask(model!, [first!, second!]);
    expect(alone).toMatchObject({ kind: 'failed', fellTo: [first!.id, second!.id] });
  });

  it('gets one attempt once a backend may have begun the request', async () => {
    const others = await Promise.all([backend(answering(500)), backend(answering(500))]);
    const bad = await backend(reset);
    expect((await ask(modelWith([bad]), [modelWith(others)])).kind).toBe('failed');
    expect(others[0].asked + others[1].asked).toBe(1);
  });

  it('serves what finds no place at the model', async () => {
    const [busy, good] = await Promise.all([backend(() => {}), backend(well)]);
    busy.maxConcurrency = 1;
    const [model, other] = [modelWith([busy]), modelWith([good])];
    const waiting = new PlainRelay<Buffer>((answer) => ({ kind: 'usable', answer }));
    const first = waiting.run(exchangeOf(model, waiting, upstream));
    expect(await ask(model, [other])).toMatchObject({ kind: 'answer', served: other.id });
    waiting.clientClosed();
    expect((await first).kind).toBe('client_closed');
  });
});
