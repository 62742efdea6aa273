import { metrics } from '@tollgate/runtime';
import { eventually, RawSocket } from '@tollgate/testing';
import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { publicConnections } from './descriptors';
import type { Envelope } from './raw-answer';
import { acceptingServer, continueIfOwed } from './server';

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Opens a new port. Resolves with its URL. */
async function open(
  handler: RequestListener,
  maxConnections = Infinity,
  envelope: Envelope = ({ status, message }) => JSON.stringify({ error: { status, message } }),
): Promise<string> {
  const server = acceptingServer(handler, { port: 'public', maxConnections, requestTimeoutMs: 60_000, envelope });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const greet: RequestListener = (_request, response) => void response.end('hello');
const head = (...lines: string[]) => [...lines, '', ''].join('\r\n');

describe('an ambiguous or malformed request is refused in the envelope, and its connection is closed', () => {
  it.each([
    ['two hosts', head('GET / HTTP/1.1', 'Host: a', 'Host: b'), 400],
    ['two hosts that are the same', head('GET / HTTP/1.1', 'Host: a', 'hOST: a'), 400],
    ['no host', head('GET / HTTP/1.1'), 400],
    ['another version', head('GET / HTTP/2.0', 'Host: a'), 400],
    ['an unknown version', head('GET / HTTP/1.2', 'Host: a'), 400],
    ['version 0.9', head('GET / HTTP/0.9', 'Host: a'), 400],
    ['no version', 'GET /\r\n\r\n', 400],
    ['two codings', `${head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip, chunked')}0\r\n\r\n`, 400],
    [
      'two codings in two lines',
      `${head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: gzip', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      400,
    ],
    ['chunks in HTTP/1.0', `${head('POST / HTTP/1.0', 'Transfer-Encoding: chunked')}0\r\n\r\n`, 400],
    [
      'a length and chunks',
      `${head('POST / HTTP/1.1', 'Host: a', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      400,
    ],
    [
      'chunks and a length',
      `${head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`,
      400,
    ],
    ['two lengths', `${head('POST / HTTP/1.1', 'Host: a', 'Content-Length: 1', 'Content-Length: 1')}x`, 400],
    ['a folded line', head('GET / HTTP/1.1', 'Host: a', 'X: a', ' b'), 400],
    ['a control character', head('GET / HTTP/1.1', 'Host: a', 'X: a\x01b'), 400],
    ['bare line feeds', 'GET / HTTP/1.1\nHost: a\n\n', 400],
    ['headers without end', head('GET / HTTP/1.1', 'Host: a', `X: ${'y'.repeat(20_000)}`), 431],
    ['a tunnel', head('CONNECT a:443 HTTP/1.1', 'Host: a:443'), 400],
    ['another expectation', head('POST / HTTP/1.1', 'Host: a', 'Expect: something', 'Content-Length: 1'), 417],
  ])('%s', async (_, text, status) => {
    let reached = 0;
    const url = await open((request, response) => {
      reached += 1;
      greet(request, response);
    });
    const answer = await new RawSocket(url).send(text).toEnd();
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer.match(/^HTTP/gm)).toHaveLength(1);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).toMatch(/\r\nx-request-id: req_/);
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toEqual({ error: { status, message: expect.any(String) } });
    expect(reached).toBe(0);
  });

  it('a valid request is accepted, over HTTP/1.0 also without a host', async () => {
    const url = await open(greet);
    const chunks = `${head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: Chunked')}0\r\n\r\n`;
    for (const text of [head('GET / HTTP/1.1', 'Host: a'), chunks]) {
      const socket = new RawSocket(url).send(text);
      expect(await socket.until('hello')).toMatch(/^HTTP\/1\.1 200 /);
      socket.destroy();
    }
    expect(await new RawSocket(url).send(head('GET / HTTP/1.0')).toEnd()).toContain('hello');
  });
});

it.each([
  ['http://a/v1/keys?x=1', '/v1/keys?x=1'],
  ['HTTPS://me:secret@a:1/v1/keys', '/v1/keys'],
  ['http://a', '/'],
  ['http://a?x=1', '/?x=1'],
  ['/http://a/', '/http://a/'],
  ['*', '*'],
])('the target %s is the path %s', async (target, path) => {
  const url = await open((request, response) => void response.end(`<${request.url}>`));
  const socket = new RawSocket(url).send(head(`OPTIONS ${target} HTTP/1.1`, 'Host: a'));
  expect(await socket.until('>')).toContain(`<${path}>`);
  socket.destroy();
});

describe('a request whose body is malformed or too late is refused in the envelope of its path', () => {
  const BODY = head('POST /v2/x HTTP/1.1', 'Host: a', 'X-Request-Id: mine', 'Transfer-Encoding: chunked');

  it.each([
    ['malformed', 400, (socket: RawSocket) => socket.send('NOT A SIZE\r\n')],
    [
      'too late',
      408,
      (_: RawSocket, accepted: Socket) =>
        servers.at(-1)!.emit('clientError', Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), accepted),
    ],
  ])('%s', async (_, status, fail) => {
    let begun = (_socket: Socket) => {};
    const accepted = new Promise<Socket>((resolve) => (begun = resolve));
    const url = await open(
      (request) => begun(request.resume().socket),
      Infinity,
      (refusal, path) => JSON.stringify({ status: refusal.status, path }),
    );
    const socket = new RawSocket(url).send(BODY);
    fail(socket, await accepted);
    const answer = await socket.toEnd();
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain('\r\nx-request-id: mine\r\n');
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toEqual({ status, path: '/v2/x' });
  });
});

describe('nothing is written into an answer that has begun', () => {
  const GARBAGE = 'NONSENSE\r\n\r\n';

  it('garbage after the request of a stream ends the connection after the stream, without an error', async () => {
    let go = () => {};
    const url = await open((_request, response) => {
      response.write('first');
      go = () => response.end('last');
    });
    const socket = new RawSocket(url).send(head('GET / HTTP/1.1', 'Host: a'));
    await socket.until('first');
    const noticed = once(servers.at(-1)!, 'clientError');
    socket.send(GARBAGE.repeat(10_000));
    await noticed;
    go();
    const text = await socket.toEnd();
    expect(text).toMatch(/first[\s\S]*last\r\n0\r\n\r\n$/);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it('garbage after a request that is not answered yet does not replace its answer', async () => {
    let answer = () => {};
    const url = await open((_request, response) => {
      answer = () => response.end('hello');
    });
    const socket = new RawSocket(url).send(`${head('GET / HTTP/1.1', 'Host: a')}${GARBAGE}`);
    await eventually(() => {
      answer();
      expect(socket.text).not.toBe('');
    });
    const text = await socket.toEnd();
    expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*hello$/i);
  });

  it('garbage in the body of a request that is not answered yet is answered 400', async () => {
    const url = await open((request) => void request.resume());
    const text = await new RawSocket(url)
      .send(`${head('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked')}NOT A SIZE\r\n`)
      .toEnd();
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('a request body', () => {
  const POST = head('POST / HTTP/1.1', 'Host: a', `Content-Length: ${10 ** 9}`, 'Expect: 100-continue');

  it('that no handler reads is not requested, and the connection is closed after the answer', async () => {
    const url = await open(greet);
    const text = await new RawSocket(url).send(POST).toEnd();
    expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*hello$/);
  });

  it('is requested once, when a handler reads it', async () => {
    const url = await open((request, response) => {
      continueIfOwed(request, response);
      continueIfOwed(request, response);
      request.on('data', () => {}).on('end', () => response.end('read'));
    });
    const socket = new RawSocket(url).send(
      head('POST / HTTP/1.1', 'Host: a', 'Content-Length: 4', 'Expect: 100-continue'),
    );
    await socket.until('100 Continue\r\n\r\n');
    expect((await socket.send('body').until('read')).match(/100 Continue/g)).toHaveLength(1);
    socket.destroy();
  });

  it('that no handler reads is dropped up to a bound, so that a client that still sends gets its answer', async () => {
    let taken = 0;
    const url = await open((request, response) => {
      request.socket.once('close', () => (taken = request.socket.bytesRead));
      response.end('enough');
    });
    const socket = new RawSocket(url).send(head('POST / HTTP/1.1', 'Host: a', `Content-Length: ${50 * 2 ** 20}`));
    for (let mib = 0; mib < 50; mib++) socket.send(Buffer.alloc(2 ** 20));
    expect(await socket.toEnd()).toContain('enough');
    await eventually(() => expect(taken).toBeGreaterThan(0));
    expect(taken).toBeLessThan(2 ** 20);
  });
});

describe('requests that are sent before the answer to the first', () => {
  const GET = head('GET / HTTP/1.1', 'Host: a');

  it('are answered in order', async () => {
    let number = 0;
    const url = await open((_request, response) => void response.end(`<${(number += 1)}>`));
    const socket = new RawSocket(url).send(GET.repeat(60)).send(head('GET / HTTP/1.1', 'Host: a', 'Connection: close'));
    expect((await socket.toEnd()).match(/<\d+>/g)).toEqual(Array.from({ length: 61 }, (_, n) => `<${n + 1}>`));
  });

  it.each([[''], ['Expect: something\r\n']])('end the connection if they are too many (%j)', async (more) => {
    let reached = 0;
    const url = await open(() => void (reached += 1));
    const one = GET.replace('\r\n\r\n', `\r\n${more}\r\n`);
    expect(await new RawSocket(url).send(GET + one.repeat(1_000)).toEnd()).toBe('');
    expect(reached).toBeLessThanOrEqual(64);
  });
});

describe('the limit of connections', () => {
  const value = async (name: string) =>
    Number(new RegExp(`^${name}\\{port="public"\\} (\\S+)$`, 'm').exec(await metrics.metrics())?.[1]);

  it('answers further ones 503, closes and counts them, and does not affect the open ones', async () => {
    const url = await open(greet, 2);
    const GET = head('GET / HTTP/1.1', 'Host: a');
    const before = await value('tollgate_connections_refused_total');
    const kept = [new RawSocket(url), new RawSocket(url)];
    for (const socket of kept) await socket.send(GET).until('hello');
    const text = await new RawSocket(url).send(GET).toEnd();
    expect(text).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n/);
    expect(text).not.toContain('hello');
    expect((await value('tollgate_connections_refused_total')) - before).toBe(1);
    await eventually(async () => expect(await value('tollgate_connections')).toBe(2));
    await kept[0]!.send(GET).until('hello');
    kept[1]!.destroy();
    await eventually(async () => expect(await value('tollgate_connections')).toBe(1));
    const next = new RawSocket(url);
    await next.send(GET).until('hello');
    for (const socket of [kept[0]!, next]) socket.destroy();
  });

  it('is the setting, or else derived from the descriptors: two a connection, beside a reserve', () => {
    expect(publicConnections(undefined, 65_536)).toBe(32_512);
    expect(publicConnections(undefined, 1_024)).toBe(256);
    expect(publicConnections(undefined, 100)).toBe(16);
    expect(publicConnections(500, 65_536)).toBe(500);
    expect(publicConnections(undefined, null)).toBe(Infinity);
    expect(publicConnections(undefined)).toBeGreaterThan(0);
  });
});
