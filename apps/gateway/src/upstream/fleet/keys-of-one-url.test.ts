import type { ServerResponse } from 'node:http';
import { eventually } from '@tollgate/testing';
import { backend, type Answer, closeAll, exchangeOf, modelWith, upstreamWith, wholeRelay } from '../exchange.fixture';

afterAll(closeAll);

const upstream = upstreamWith({});
const well: Answer = (_, response) => void response.end('yes');

/** A model whose backends are two keys at one URL, of which the first one gets these answers; and a fallback. */
async function twoKeys(status: number, headers: Record<string, string> = {}) {
  const asked = { first: 0, second: 0 };
  const one = await backend((request, response) => {
    const isFirst = request.headers.authorization === 'Bearer first';
    asked[isFirst ? 'first' : 'second'] += 1;
    if (isFirst) response.writeHead(status, headers).end('{}');
    else well(request, response);
  });
  const other = await backend(well);
  const model = modelWith([
    { ...one, authorization: 'Bearer first', weight: 1_000 },
    { ...one, authorization: 'Bearer second' },
  ]);
  const fallback = modelWith([other]);
  const ask = async () => {
    const relay = wholeRelay();
    const exchange = exchangeOf(model, relay, upstream, [fallback]);
    expect((await relay.run(exchange)).kind).toBe('answer');
    return exchange.model.id;
  };
  return { asked, model, other, ask };
}

it('a pause that a backend named is not shortened by a later 429 without Retry-After', async () => {
  const open: ServerResponse[] = [];
  const model = modelWith([await backend((_, response) => void open.push(response))]);
  const calls = [1, 2].map(() => {
    const relay = wholeRelay();
    return relay.run(exchangeOf(model, relay, upstream));
  });
  await eventually(() => expect(open.length).toBe(2));
  open.shift()!.writeHead(429, { 'retry-after': '40' }).end();
  const restMs = () => upstream.fleet.poolOf(model).backends[0]!.breaker.restMs(performance.now());
  await eventually(() => expect(restMs()).toBeGreaterThan(1_000));
  open.shift()!.writeHead(429).end();
  await Promise.all(calls);
  expect(restMs()).toBeGreaterThan(1_000);
});

describe('two keys at one URL', () => {
  it('have their own pauses: the fallback is not asked while one of them is good', async () => {
    const { asked, model, other, ask } = await twoKeys(429, { 'retry-after': '40' });
    for (let n = 0; n < 10; n++) expect(await ask()).toBe(model.id);
    expect([asked, other.asked]).toEqual([{ first: 1, second: 10 }, 0]);
  });

  it('have their own circuit breakers: one that is refused keeps the other one from no call', async () => {
    const { asked, model, other, ask } = await twoKeys(401);
    for (let n = 0; n < 15; n++) expect(await ask()).toBe(model.id);
    expect([asked.second, other.asked]).toEqual([15, 0]);
    const [first, second] = upstream.fleet.poolOf(model).backends;
    expect([first!.breaker.isOpen, second!.breaker.isOpen]).toEqual([true, false]);
  });
});
