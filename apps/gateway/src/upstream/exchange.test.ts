import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tollgate/testing';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { takeByWeight } from './exchange';
import { PlainRelay } from './plain-answer';
import { Upstream } from './upstream';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const servers: Server[] = [];
/** As long as a slow machine may need: what is closed at once is stale, however late the test sees it. */
const NEVER_MS = 600_000;
const upstreamWith = (timeoutMs: number, staleCloseMs = NEVER_MS) =>
  new Upstream({
    connectTimeoutMs: timeoutMs,
    plainHeadTimeoutMs: timeoutMs,
    streamHeadTimeoutMs: timeoutMs,
    idleTimeoutMs: timeoutMs,
    staleCloseMs,
  });
const upstream = upstreamWith(10_000);
/** A backend that works for WORK_MS before it closes has surely worked for longer than what is stale. */
const STALE_CLOSE_MS = 20;
const WORK_MS = 60;
/** Of the event loop, a few microseconds each: a slow machine makes no more of them. */
const MAX_TURNS = 2_000;
const strict = upstreamWith(10_000, STALE_CLOSE_MS);
const impatient = upstreamWith(500);
afterAll(async () => {
  await upstream.close();
  await impatient.close();
  await strict.close();
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
    passthrough: new Set<string>(),
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
    { model: { backends } as unknown as CatalogModel, path: '/x', stream: false, body: ({ model }) => model },
    relay,
  );
}

const ask = (...backends: Backend[]) => askBy(upstream, ...backends);

function askBy(by: Upstream, ...backends: Backend[]) {
  const relay = new PlainRelay();
  return relay.run(exchangeWith(relay, backends, by));
}

/** Where somebody listened a moment ago, and nobody does. */
async function closedOrigin(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

const sum = (backends: { asked: number }[]) => backends.reduce((total, { asked }) => total + asked, 0);

const status =
  (code: number): Answer =>
  (_, response) =>
    response.writeHead(code).end('{"error":{"message":"no"}}');

const busyAfterWork: Answer = (request, response) => void setTimeout(() => status(503)(request, response), WORK_MS);

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

  it('that no backend has begun goes to each other one, three times in all: busy, or nobody there', async () => {
    const busy = await Promise.all([503, 429, 503, 429, 503].map((code) => backend(status(code))));
    expect(await ask(...busy)).toMatchObject({ failure: { kind: 'busy' } });
    expect([sum(busy), Math.max(...busy.map(({ asked }) => asked))]).toEqual([3, 1]);
    const gone = { ...busy[0]!, origin: await closedOrigin(), weight: 1e9 };
    const well = await backend((_, response) => response.end('yes'));
    expect(await ask(gone, { ...gone, basePath: '/other' }, well)).toMatchObject({ kind: 'answer' });
    expect(well.asked).toBe(1);
  });

  it('that a backend may have begun is asked once more, of another one; whatever happens there', async () => {
    for (const codes of [
      [500, 500, 500],
      [502, 501, 500, 500],
      [500, 503, 503],
      [500, 429, 429],
    ]) {
      const others = await Promise.all(codes.map((code) => backend(status(code))));
      const first = others.shift()!;
      first.weight = 1e9;
      expect((await ask(first, ...others)).kind).toBe('failed');
      expect([first.asked, sum(others)]).toEqual([1, 1]);
    }
    const alone = await backend(status(500));
    expect((await ask(alone, { ...alone }, { ...alone, model: 'other' })).kind).toBe('failed');
    expect(alone.asked).toBe(1);
  });

  it('that is refused, or not allowed, is asked of nobody else', async () => {
    for (const [code, kind] of [
      [400, 'refused'],
      [422, 'refused'],
      [413, 'too_large'],
      [404, 'failed'],
      [401, 'failed'],
      [302, 'failed'],
      [504, 'timeout'],
    ] as const) {
      const all = await Promise.all([1, 2, 3].map(() => backend(status(code))));
      expect(await ask(...all)).toMatchObject({ kind: 'failed', failure: { kind } });
      expect(sum(all)).toBe(1);
    }
  });

  it.each([true, false])('that was dropped after work goes once to another backend (kept: %s)', async (kept) => {
    const answered = new WeakSet<object>();
    const dropping = () =>
      backend((request, response) => {
        if (!kept || answered.has(request.socket)) return void setTimeout(() => request.socket.destroy(), WORK_MS);
        answered.add(request.socket);
        response.end('yes');
      });
    for (const count of [1, 2, 3]) {
      const all = await Promise.all(Array.from({ length: count }, dropping));
      if (kept) for (const one of all) expect((await askBy(strict, one)).kind).toBe('answer');
      const before = sum(all);
      expect(await askBy(strict, ...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
      expect(sum(all) - before).toBe(Math.min(count, 2));
    }
  });

  it('that a backend answers 503 after work goes once to another one: its engine may have begun, and gone', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => backend(busyAfterWork)));
    expect(await askBy(strict, ...all)).toMatchObject({ failure: { kind: 'busy' } });
    expect(sum(all)).toBe(2);
    const well = await backend((_, response) => response.end('yes'));
    all[0]!.weight = 1e9;
    expect((await askBy(strict, all[0]!, well)).kind).toBe('answer');
  });

  it('over a kept connection that closes at once is repeated once, and no more', async () => {
    let answers = 1;
    const closing = await backend((request, response) => {
      if (answers-- > 0) response.end('yes');
      else request.socket.destroy();
    });
    expect((await ask(closing)).kind).toBe('answer');
    expect(await ask(closing)).toMatchObject({ kind: 'failed' });
    expect(closing.asked).toBe(3);
    // A new connection that closes at once is not stale.
    expect(await ask(closing)).toMatchObject({ kind: 'failed' });
    expect(closing.asked).toBe(4);
  });

  it('knows which backends may have begun the request, in the order asked: not those that say that they refused it', async () => {
    const begunAt = (...answers: Answer[]) => begunBy(upstream, ...answers);
    const begunBy = async (by: Upstream, ...answers: Answer[]) => {
      const backends = await Promise.all(answers.map((answer) => backend(answer)));
      const relay = new PlainRelay();
      const exchange = exchangeWith(relay, backends, by);
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
    expect((await begunBy(strict, busyAfterWork, busyAfterWork, busyAfterWork)).length).toBe(2);
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
    const turns: number[] = [];
    for (let n = 0; n < 3; n++) {
      let closed = false;
      const hanging = await backend((request) => void request.socket.on('close', () => (closed = true)));
      const relay = new PlainRelay();
      void relay.run(exchangeWith(relay, [hanging]));
      await eventually(() => expect(hanging.asked).toBe(1));
      relay.clientClosed();
      let taken = 0;
      for (; !closed && taken < MAX_TURNS; taken++) await new Promise(setImmediate);
      turns.push(taken);
    }
    // The least of three, as the kernel may do something else at one moment.
    expect(Math.min(...turns)).toBeLessThan(MAX_TURNS);
  });

  it.each([
    ['compressed, which nobody asked for', { 'content-encoding': 'gzip' }],
    ['a page', { 'content-type': 'text/html; charset=utf-8' }],
    ['an event stream where JSON was asked for', { 'content-type': 'text/event-stream' }],
  ])('reads no answer that is %s', async (_, headers) => {
    const all = await Promise.all(
      [1, 2, 3].map(() => backend((_request, response) => void response.writeHead(200, headers).write('x'))),
    );
    expect(await ask(...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
    expect(sum(all)).toBe(2);
  });

  it('keeps the backend’s words for the log, bounded and without its key', async () => {
    const words = `no: Bearer secret, secret, ${'no '.repeat(1_000)}`;
    const failing = await backend((_, response) => void response.writeHead(404).end(`{"detail":"${words}"}`));
    const answer = await ask(failing);
    const { reason } = (answer as { failure: { reason: string } }).failure;
    expect(reason).toMatch(/^status 404: no: Bearer \[removed\], \[removed\], /);
    expect(reason.length).toBeLessThan(400);
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
      passthrough: new Set<string>(),
    }));
    const at = (random: number) => takeByWeight([...backends], random).origin;
    expect([0, 0.099, 0.1, 0.399, 0.4, 0.999].map(at)).toEqual(['1', '1', '3', '3', '6', '6']);
    const left = [...backends];
    expect(new Set([takeByWeight(left), takeByWeight(left), takeByWeight(left)]).size).toBe(3);
    expect(left).toEqual([]);
  });
});
