import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { ask, backend, closeAll, exchangeWith, upstreamWith, wholeRelay, type Answer } from './exchange.fixture';
import { LostAddresses } from './lost-addresses';

const LOOPBACK = '127.0.0.1';
const OTHER = '192.0.2.7';

afterAll(closeAll);

/** A backend that also counts the connections from which it got requests. */
async function watched(answer: Answer) {
  const sockets = new Set<unknown>();
  const one = await backend((request, response) => {
    sockets.add(request.socket);
    answer(request, response);
  });
  return { one, sockets };
}

describe('addresses that this machine has lost', () => {
  it('close the idle connections from them, so that the next request opens another', async () => {
    const upstream = upstreamWith({});
    const { one, sockets } = await watched((_request, response) => response.end('whole'));
    const addresses = new LostAddresses(upstream);
    addresses.closeLost(new Set([LOOPBACK, OTHER]));
    await ask(upstream, one);
    await ask(upstream, one);
    expect(sockets.size).toBe(1);
    addresses.closeLost(new Set([OTHER]));
    await ask(upstream, one);
    expect(sockets.size).toBe(2);
  });

  it('close no connection from another address, and none twice', async () => {
    const upstream = upstreamWith({});
    const { one, sockets } = await watched((_request, response) => response.end('whole'));
    const addresses = new LostAddresses(upstream);
    addresses.closeLost(new Set([LOOPBACK, OTHER]));
    await ask(upstream, one);
    addresses.closeLost(new Set([LOOPBACK]));
    await ask(upstream, one);
    expect(sockets.size).toBe(1);
    expect(upstream.connections.closeIdle([LOOPBACK])).toBe(1);
    expect(upstream.connections.closeIdle([LOOPBACK])).toBe(0);
  });

  it('do not end a request that is in progress', async () => {
    const upstream = upstreamWith({});
    const requests = new EventEmitter();
    const one = await backend((_request, response) => void requests.emit('request', response));
    const asked = once(requests, 'request') as Promise<[ServerResponse]>;
    const relay = wholeRelay();
    const answer = relay.run(exchangeWith(relay, [one], upstream));
    const [response] = await asked;
    expect(upstream.connections.closeIdle([LOOPBACK])).toBe(0);
    response.end('whole');
    expect(await answer).toMatchObject({ kind: 'answer' });
  });
});
