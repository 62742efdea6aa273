import { createServer, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '@tollgate/testing';
import { backendAt, closeAll, exchangeOf, modelWith, upstreamWith, wholeRelay } from '../exchange.fixture';

/** Accepts connections, and never answers the handshake of TLS: no connection is ever open. */
const sockets: Socket[] = [];
const mute = createServer((socket) => void sockets.push(socket.on('error', () => {})));
beforeAll(() => new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  await closeAll();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => mute.close(resolve));
});

it('a connection that does not open makes its backend unreachable, also if the client has left by then', async () => {
  const upstream = upstreamWith({ connectTimeoutMs: 500 });
  const model = modelWith([backendAt(`https://127.0.0.1:${(mute.address() as AddressInfo).port}`)]);
  const relay = wholeRelay();
  const answer = relay.run(exchangeOf(model, relay, upstream));
  relay.clientClosed();
  expect((await answer).kind).toBe('client_closed');
  const { breaker, engine } = upstream.fleet.poolOf(model).backends[0]!;
  await eventually(() => expect(engine).toMatchObject({ inFlight: 0 }));
  expect([breaker.isOpen, breaker.unreachable, breaker.isSlowToRefuse]).toEqual([true, true, true]);
});
