import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { configYaml } from '../use-gateway';

/**
 * Starts a backend for the calling test file and its one model. `others` are further lines of the configuration.
 * Returns the configuration for `yaml` of `useGateway`, which starts after it.
 */
export function useOwnBackend(
  model: string,
  listener: RequestListener,
  others: (url: string) => string = () => '',
): () => string {
  const backend = createServer(listener);
  beforeAll(() => new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve)));
  afterAll(async () => {
    backend.closeAllConnections();
    await new Promise((resolve) => backend.close(resolve));
  });
  return () => {
    const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/v1`;
    const own = `  - { id: ${model}, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, passthrough: [simulator],
      price: { input: '1', output: '2' }, backends: [{ url: '${url}' }] }`;
    return configYaml({ models: `${own}\n${others(url)}` });
  };
}
