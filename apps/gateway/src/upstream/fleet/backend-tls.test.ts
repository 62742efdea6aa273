import type { TLSSocket } from 'node:tls';
import { connectorFor } from './connections';
import { ask, closeAll, upstreamWith } from '../exchange.fixture';
import { useTlsBackend } from './tls-backend.fixture';
import { AUTHORITY, CLIENT_CERTIFICATE, CLIENT_KEY, SERVER_KEY } from './tls.fixture';

const upstream = upstreamWith({});
const seen: unknown[] = [];
const server = useTlsBackend({ ca: AUTHORITY, requestCert: true, rejectUnauthorized: true }, ({ socket, headers }) => {
  seen.push([(socket as TLSSocket).getPeerCertificate().subject.CN, headers['x-route'], headers['x-team']]);
});
afterAll(closeAll);

const FULL = { ca: AUTHORITY, certificate: CLIENT_CERTIFICATE, key: CLIENT_KEY, serverName: 'backend.test' };

const backendWith = (tls: Partial<typeof FULL>) => server.as({ tls, headers: { 'X-Route': 'blue', 'x-team': 'a' } });

describe('a backend with TLS of its own', () => {
  it('gets our certificate and the headers of its configuration, and is known by its authority and name', async () => {
    expect((await ask(upstream, backendWith(FULL))).kind).toBe('answer');
    expect(seen).toEqual([['client', 'blue', 'a']]);
  });

  it.each(['ca', 'certificate', 'serverName'] as const)('cannot be reached without its %s', async (missing) => {
    const rest = Object.fromEntries(Object.entries(FULL).filter(([name]) => name !== missing));
    const before = seen.length;
    expect((await ask(upstream, backendWith(rest))).kind).toBe('failed');
    expect(seen.length).toBe(before);
  });

  it.each([
    ['a certificate that is none', { ...FULL, certificate: 'none' }],
    ['a key that is none', { ...FULL, key: 'none' }],
    ['the key of another certificate', { ...FULL, key: SERVER_KEY }],
  ])('is unreachable with %s, for requests and for the looks in the background', async (_what, tls) => {
    const wrong = backendWith(tls);
    expect(await ask(upstream, wrong)).toMatchObject({ kind: 'failed' });
    const { protocol, hostname, port, host } = new URL(wrong.origin);
    const connect = connectorFor(wrong, 1_000);
    const told = new Promise((resolve) => {
      connect({ protocol, hostname, port, host }, (...result) => resolve(result));
    });
    const code = expect.stringMatching(/^ERR_OSSL_/);
    expect(await told).toEqual([expect.objectContaining({ code }), null]);
  });

  it('shares no connection with the same host under another certificate', () => {
    const keys = [backendWith(FULL), backendWith({ ...FULL, serverName: 'other' }), backendWith({})];
    expect(new Set(keys.map(({ connectionKey }) => connectionKey)).size).toBe(3);
    expect(JSON.stringify(keys.map(({ connectionKey }) => connectionKey))).not.toMatch(/BEGIN|KEY/);
  });
});
