import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tollgate/testing';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { takeByWeight } from './exchange';
import { PlainRelay } from './plain-answer';
import { Upstream } from './upstream';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const servers: Server[] = [];
const upstreamWith = (timeoutMs: number) =>
  new Upstream({
    connectTimeoutMs: timeoutMs,
    plainHeadTimeoutMs: timeoutMs,
    streamHeadTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
  });
const upstream = upstreamWith(10_000);
const impatient = upstreamWith(500);
afterAll(async () => {
  await upstream.close();
  await impatient.close();
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
});

/** A backend that answers so, and counts. */
async function backend(answer: Answer): Promise<Backend & { asked: number }> {
  const self = {
    name: '',
    origin: '',
    basePath: '/v1',
    model: 'inner',
    authorization: 'Bearer secret',
    weight: 1,
    dialect: 'any' as const,
    asked: 0,
  };
  const server = createServer((request, response) => {
    self.asked += 1;
    request.resume().on('end', () => answer(request, response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  self.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  self.name = self.origin + self.basePath;
  return self;
}

function exchangeWith(relay: PlainRelay, backends: Backend[], by = upstream) {
  return by.exchange(
    { model: { backends } as unknown as CatalogModel, path: '/x', stream: false, body: (name) => name },
    relay,
  );
}

function ask(...backends: Backend[]) {
  const relay = new PlainRelay();
  return relay.run(exchangeWith(relay, backends));
}

const status =
  (code: number): Answer =>
  (_, response) =>
    response.writeHead(code).end('{"error":{"message":"no"}}');

describe('an exchange', () => {
  it('sends the secret, the path and the backend’s own body', async () => {
    let seen: unknown;
    const echo = await backend((request, response) => {
      seen = [request.method, request.url, request.headers.authorization, request.headers['content-length']];
      response.end('yes');
    });
    expect(await ask(echo)).toEqual({ kind: 'answer', body: Buffer.from('yes') });
    expect(seen).toEqual(['POST', '/v1/x', 'Bearer secret', '5']);
  });

  it('tries others after a 5xx or a 429, three times in all, and none after a 400 or a 404', async () => {
    const failing = await Promise.all([500, 503, 429, 502, 500].map((code) => backend(status(code))));
    expect((await ask(...failing)).kind).toBe('failed');
    expect(failing.reduce((sum, { asked }) => sum + asked, 0)).toBe(3);
    for (const [code, kind] of [
      [400, 'refused'],
      [404, 'failed'],
      [401, 'failed'],
    ] as const) {
      const all = await Promise.all([1, 2, 3].map(() => backend(status(code))));
      expect(await ask(...all)).toMatchObject({ kind: 'failed', failure: { kind } });
      expect(all.reduce((sum, { asked }) => sum + asked, 0)).toBe(1);
    }
  });

  it('knows which backends may have begun the request, in the order asked: not those that say that they refused it', async () => {
    const begunAt = async (...answers: Answer[]) => {
      const backends = await Promise.all(answers.map((answer) => backend(answer)));
      const relay = new PlainRelay();
      const exchange = exchangeWith(relay, backends);
      await relay.run(exchange);
      const asked = new Map(backends.map((one, index) => [one.name, index]));
      return exchange.begun.map((name) => asked.get(name));
    };
    const answer: Answer = (_, response) => void response.end('yes');
    expect(await begunAt(answer)).toEqual([0]);
    for (const code of [400, 401, 404, 429, 503]) expect(await begunAt(status(code))).toEqual([]);
    expect(await begunAt(status(500))).toEqual([0]);
    expect((await begunAt(status(500), status(500))).sort()).toEqual([0, 1]);
    expect(await begunAt((_, response) => void response.destroy())).toEqual([0]);
  });

  it('does not ask twice when an answer has begun', async () => {
    const cut: Answer = (_, response) => {
      response.writeHead(200).write('a');
      setImmediate(() => response.destroy());
    };
    const all = await Promise.all([backend(cut), backend(cut)]);
    expect(await ask(...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
    expect(all[0].asked + all[1].asked).toBe(1);
  });

  it('repeats on a new connection when the backend had closed the kept one', async () => {
    const used = new WeakSet<object>();
    const closing = await backend((request, response) => {
      if (used.has(request.socket)) request.socket.destroy();
      else response.end('yes');
      used.add(request.socket);
    });
    expect((await ask(closing)).kind).toBe('answer');
    expect((await ask(closing)).kind).toBe('answer');
    expect(closing.asked).toBe(3);
  });

  it('is a timeout when there is no head in time, and when the body falls silent', async () => {
    const headless = await backend(() => {});
    const silent = await backend((_, response) => void response.writeHead(200).write('a'));
    for (const one of [headless, silent]) {
      const relay = new PlainRelay();
      const answer = await relay.run(exchangeWith(relay, [one], impatient));
      expect(answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    }
  });

  it('that is aborted before its connection stands calls nobody, and its connection serves the next', async () => {
    const slow = await backend((_, response) => void response.end('yes'));
    const relay = new PlainRelay();
    const exchange = exchangeWith(relay, [slow]);
    const answer = relay.run(exchange);
    relay.clientClosed();
    expect(await answer).toEqual({ kind: 'client_closed' });
    expect((await ask(slow)).kind).toBe('answer');
  });

  it('that is aborted closes the backend’s connection at once', async () => {
    const tookMs: number[] = [];
    for (let n = 0; n < 3; n++) {
      let closed = 0;
      const hanging = await backend((request) => void request.socket.on('close', () => (closed = performance.now())));
      const relay = new PlainRelay();
      void relay.run(exchangeWith(relay, [hanging]));
      await eventually(() => expect(hanging.asked).toBe(1));
      const left = performance.now();
      relay.clientClosed();
      await eventually(() => expect(closed).toBeGreaterThan(0));
      tookMs.push(closed - left);
    }
    // The least of three, as the machine may do something else at one moment.
    expect(Math.min(...tookMs)).toBeLessThan(100);
  });

  it('reads no compressed answer: it did not ask for one', async () => {
    const zipped = await backend((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'));
    expect(await ask(zipped)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
  });
});

describe('the choice of a backend', () => {
  it('goes by weight, and takes each only once', () => {
    const backends = [1, 3, 6].map((weight) => ({
      name: String(weight),
      origin: String(weight),
      basePath: '',
      model: '',
      authorization: null,
      weight,
      dialect: 'any' as const,
    }));
    const at = (random: number) => takeByWeight([...backends], random).origin;
    expect([0, 0.099, 0.1, 0.399, 0.4, 0.999].map(at)).toEqual(['1', '1', '3', '3', '6', '6']);
    const left = [...backends];
    expect(new Set([takeByWeight(left), takeByWeight(left), takeByWeight(left)]).size).toBe(3);
    expect(left).toEqual([]);
  });
});
