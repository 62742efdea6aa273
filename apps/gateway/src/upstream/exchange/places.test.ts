import type { ServerResponse } from 'node:http';
import { eventually } from '@tollgate/testing';
import type { CatalogModel } from '../../catalog/catalog';
import { backend, closeAll, exchangeOf, modelWith, upstreamWith, wholeRelay } from '../exchange.fixture';

const upstream = upstreamWith({ timeoutMs: 60_000 });
afterAll(closeAll);

const QUEUE = { maxRequests: 10, maxWaitMs: 60_000 };

function ask(model: CatalogModel) {
  const relay = wholeRelay();
  return relay.run(exchangeOf(model, relay, upstream));
}

/** A backend with one place, which answers when the test says so. */
async function oneAtATime() {
  const open: ServerResponse[] = [];
  const one = await backend((_, response) => void open.push(response));
  one.maxConcurrency = 1;
  return { one, open };
}

describe('a place that becomes free', () => {
  it('goes to the next request if the first one that waits has failed there', async () => {
    const [a, b] = [await oneAtATime(), await oneAtATime()];
    const model = modelWith([a.one, b.one], QUEUE);
    const { queue } = upstream.fleet.poolOf(model);
    const first = [ask(model), ask(model)];
    await eventually(() => expect([a.open.length, b.open.length]).toEqual([1, 1]));
    a.open.shift()!.writeHead(500).end();
    // It waits for the other backend. So this place is free, and taken by another one.
    await eventually(() => expect(queue.length).toBe(1));
    const second = ask(model);
    await eventually(() => expect(a.open.length).toBe(1));
    const third = ask(model);
    expect(queue.length).toBe(2);
    a.open.shift()!.end('yes');
    expect((await second).kind).toBe('answer');
    await eventually(() => expect([a.open.length, queue.length]).toEqual([1, 1]));
    a.open.shift()!.end('yes');
    expect((await third).kind).toBe('answer');
    for (let n = 0; n < 2; n++) {
      await eventually(() => expect(b.open.length).toBe(1));
      b.open.shift()!.end('yes');
    }
    expect((await Promise.all(first)).map(({ kind }) => kind)).toEqual(['answer', 'answer']);
  });

  it('when a kept connection was closed is not taken twice', async () => {
    const { one, open } = await oneAtATime();
    const model = modelWith([one], QUEUE);
    const { engine } = upstream.fleet.poolOf(model).backends[0]!;
    const before = ask(model);
    await eventually(() => expect(open.length).toBe(1));
    open.shift()!.end('yes');
    await before;
    const both = [ask(model), ask(model)];
    await eventually(() => expect(open.length).toBe(1));
    open.shift()!.socket!.destroy();
    for (let n = 0; n < 2; n++) {
      await eventually(() => expect(open.length).toBe(1));
      expect(engine.inFlight).toBe(1);
      open.shift()!.end('yes');
    }
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(['answer', 'answer']);
  });
});
