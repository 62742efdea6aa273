import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '@tollgate/testing';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { problemOfIssuer } from './issuer-problem';

const servers: (Server | TlsServer)[] = [];
afterEach(() => {
  jest.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});
async function listening(server: Server | TlsServer): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}/realm`;
}
const issuer = async (listener: RequestListener) => `http://${await listening(createServer(listener))}`;

it('names a certificate that is not trusted', async () => {
  const at = await listening(createTlsServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY }));
  expect(await problemOfIssuer(`https://${at}`)).toMatch(/^self-signed certificate/);
});

it('names a server that is not there', async () => {
  const at = await issuer(() => {});
  await new Promise((closed) => servers.pop()!.close(closed));
  expect(await problemOfIssuer(at)).toMatch(/ECONNREFUSED/);
});

it('names an answer that is no discovery document', async () => {
  expect(await problemOfIssuer(await issuer((_, answer) => answer.writeHead(404).end()))).toBe(
    'its discovery document is answered with 404',
  );
  expect(await problemOfIssuer(await issuer((_, answer) => answer.end('<html>')))).toMatch(/not valid JSON/);
});

it('names an issuer that does not answer in time', async () => {
  const limit = new AbortController();
  jest.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  const silent = await issuer(() => limit.abort(new DOMException('no answer in time', 'TimeoutError')));
  expect(await problemOfIssuer(silent)).toBe('no answer in time');
});

it('finds nothing wrong with a document', async () => {
  const asked: (string | undefined)[] = [];
  const at = await issuer((request, answer) => {
    asked.push(request.url);
    answer.end('{}');
  });
  expect(await problemOfIssuer(`${at}/`)).toBeUndefined();
  expect(asked).toEqual(['/realm/.well-known/openid-configuration']);
});
