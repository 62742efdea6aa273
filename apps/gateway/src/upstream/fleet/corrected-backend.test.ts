import { eventually } from '@tollgate/testing';
import type { CatalogModel } from '../../catalog/catalog';
import { backend, closeAll, exchangeOf, modelWith, upstreamWith, wholeRelay } from '../exchange.fixture';
import { useTlsBackend } from './tls-backend.fixture';
import { AUTHORITY } from './tls.fixture';

const upstream = upstreamWith({});
let asked = 0;
const server = useTlsBackend({}, () => (asked += 1));
afterAll(closeAll);

const backendAs = ({ serverName }: { serverName: string }) => server.as({ tls: { ca: AUTHORITY, serverName } });

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
