import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tollgate/testing';
import type { Backend, CatalogModel } from '../../catalog/catalog';
import { compileBackend } from '../../catalog/backend';
import { backend, closeAll, exchangeOf, modelWith, upstreamWith, wholeRelay } from '../exchange.fixture';
import { AUTHORITY, SERVER_CERTIFICATE, SERVER_KEY } from './tls.fixture';

const upstream = upstreamWith({});
let asked = 0;
const server = createServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, (request, response) => {
  asked += 1;
  request.resume().on('end', () => response.end('yes'));
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  await closeAll();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function backendAs({ serverName }: { serverName: string }): Backend {
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const config = { url, weight: 1, tls: { ca: AUTHORITY, serverName } };
  const model = { id: 'm', backends: [config] } as unknown as Parameters<typeof compileBackend>[1];
  return compileBackend(config, model, 'http://127.0.0.1:9/v1');
}

async function ask(model: CatalogModel): Promise<string> {
  const relay = wholeRelay();
  return (await relay.run(exchangeOf(model, relay, upstream))).kind;
}

it('a backend that could not be reached gets calls again once its TLS is corrected', async () => {
  const other = await backend((_, response) => response.end('yes'));
  const wrong = modelWith([backendAs({ serverName: 'wrong.test' }), other]);
  upstream.fleet.follow([wrong]);
  const [managed] = upstream.fleet.poolOf(wrong).backends;
  while (!managed!.breaker.isOpen) expect(await ask(wrong)).toBe('answer');
  const corrected = modelWith([backendAs({ serverName: 'backend.test' }), other]);
  upstream.fleet.follow([corrected]);
  await eventually(async () => {
    expect(await ask(corrected)).toBe('answer');
    expect(asked).toBeGreaterThan(0);
  });
});
