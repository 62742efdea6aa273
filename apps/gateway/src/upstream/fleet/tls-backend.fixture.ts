import type { IncomingMessage } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Backend, compileBackend } from '../../catalog/backend';
import { SERVER_CERTIFICATE, SERVER_KEY } from './tls.fixture';

/** A backend with TLS, from the first test of a file to its last. It answers `yes` to each request. */
export function useTlsBackend(options: ServerOptions, onRequest: (request: IncomingMessage) => void) {
  const server = createServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY, ...options }, (request, response) => {
    onRequest(request);
    request.resume().on('end', () => response.end('yes'));
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    /** As `tollgate.yaml` would describe it with these settings. */
    as(more: { tls: Record<string, string>; headers?: Record<string, string> }): Backend {
      const config = { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, weight: 1, ...more };
      const model = { id: 'm', backends: [config] } as unknown as Parameters<typeof compileBackend>[1];
      return compileBackend(config, model, 'http://127.0.0.1:9/v1');
    },
  };
}
