import { eventually } from '@tollgate/testing';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CatalogModel } from '../../../apps/gateway/src/catalog/catalog';
import { ChunkTranslator } from '../../../apps/gateway/src/upstream/wire/chunk-translator';
import { backendAt } from '../../../apps/gateway/src/upstream/exchange.fixture';
import { StreamRelay } from '../../../apps/gateway/src/upstream/stream/stream-relay';
import { Upstream } from '../../../apps/gateway/src/upstream/upstream';
import { startSimulator } from '../../../apps/simulator/src';

/** A stream to a client whose buffer is full from the first write until `drain`. */
function streamToStalledClient(upstream: Upstream, url: string, body: object) {
  let drain = () => {};
  let writes = 0;
  const client = { begin: () => {}, write: () => ++writes < 0, onDrain: (listener: () => void) => (drain = listener) };
  const relay = new StreamRelay(
    new ChunkTranslator(
      {
        id: 'a',
        object: 'chat.completion.chunk',
        createdSeconds: 1,
        model: 'm',
        includeUsage: false,
      },
      1,
    ),
    client,
    { take: () => 'granted', limit: Infinity, onReady: () => {} },
    { passed: false },
    { choices: 1, countText: () => 1, endOfChoice: () => ({}) },
  );
  const { origin, pathname } = new URL(url);
  const backend = backendAt(origin, pathname);
  const model = { id: 'm', backends: [backend] };
  const call = {
    model: model as unknown as CatalogModel,
    fallbacks: [],
    path: '/chat/completions',
    stream: true,
    affinity: null,
    mayBeAtFault: () => false,
    body: () => JSON.stringify(body),
    headers: [],
    request: { logged: {} },
  };
  const end = relay.run(upstream.exchange(call, relay));
  return { backend, end, relay, drain: () => drain() };
}

const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'Go on.' }] };

describe('a stream that completes while its client does not read', () => {
  it('gives its connection back, no matter where the client stalled', async () => {
    const simulator = await startSimulator({});
    const upstream = new Upstream();
    try {
      for (const simulated of [{ answerTokens: 3 }, { answerTokens: 3, tokensPerSecond: 100 }]) {
        const stream = streamToStalledClient(upstream, simulator.url, { ...body, simulator: simulated });
        let ended = false;
        void stream.end.then(() => (ended = true));
        await eventually(
          () => {
            if (!ended) stream.drain();
            expect(ended).toBe(true);
          },
          { everyMs: 1 },
        );
        expect(await stream.end).toMatchObject({ outcome: 'complete' });
        await eventually(() => {
          const connection = upstream.connections.take(stream.backend)!;
          // A new connection is not given back, so that the next round does not take it for that of the stream.
          expect(connection.used).toBe(true);
          upstream.connections.give(stream.backend, connection);
        });
      }
      expect(simulator.stats().openNow).toBe(0);
    } finally {
      await upstream.close();
      await simulator.close();
    }
  });

  it.each([
    [
      'gives its connection back if everything arrived at once',
      (response: ServerResponse) => setImmediate(() => response.end()),
    ],
    [
      'disconnects a backend that continues after [DONE]',
      (response: ServerResponse) => {
        const timer = setInterval(() => response.write(': more\n\n'), 5);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('%s', async (_, afterDone) => {
    let over = false;
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = (reason: string | null) =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: reason }] })}\n\n`;
      response.write(`${chunk(null)}${chunk('stop')}data: [DONE]\n\n`);
      response.on('close', () => (over = true));
      afterDone(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const upstream = new Upstream();
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
      const stream = streamToStalledClient(upstream, url, body);
      expect(await stream.end).toMatchObject({ outcome: 'complete' });
      await eventually(() => {
        expect(over).toBe(true);
        expect(upstream.connections.take(stream.backend)!.used).toBe(true);
      });
    } finally {
      await upstream.close();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
