import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { type Caller, configYaml, expectSettledAt, useGateway } from '../use-gateway';

/** The behaviour of the backend after it has read the next request. */
let answer: (socket: Socket) => void;
const sockets = new Set<Socket>();
const backend = createServer((socket) => {
  sockets.add(socket);
  let request = '';
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    request += bytes.toString('latin1');
    const head = request.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(request)?.[1]);
    if (head === -1 || request.length < head + 4 + length) return;
    request = '';
    asked += 1;
    answer(socket);
  });
});
let asked = 0;
const url = () => `http://127.0.0.1:${(backend.address() as AddressInfo).port}/v1`;
beforeAll(() => new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve)));

const yaml = (weight = 1, vocabularyTokens: number | null = null) =>
  configYaml({
    models: `  - { id: broken, kind: chat, contextTokens: 8192, maxOutputTokens: 4096,
      ${vocabularyTokens === null ? '' : `vocabularyTokens: ${vocabularyTokens},`}
      price: { input: '1', output: '2' }, backends: [{ url: '${url()}', model: inner-secret, weight: ${weight} }] }`,
  });
const gateway = useGateway({ yaml: () => yaml() });
let caller: Caller;
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => backend.close(resolve));
});
beforeEach(async () => {
  asked = 0;
  caller = await gateway.caller();
});

const FAILURES_THAT_OPEN = 5;
const MIB = 1024 * 1024;
const messages = [{ role: 'user', content: 'Hello' }];
const CHUNK = `data: {"choices":[{"index":0,"delta":{"content":"good "},"finish_reason":null}]}\n\n`;
const EVENTS = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';
const JSON_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const chunked = (text: string) => `${Buffer.byteLength(text, 'latin1').toString(16)}\r\n${text}\r\n`;
const say =
  (...parts: string[]) =>
  (socket: Socket) =>
    void socket.end(parts.join(''), 'latin1');
const WHOLE = '{"choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}';

async function ask(stream: boolean) {
  const body = { model: 'broken', messages, max_tokens: 20, stream };
  const response = await gateway.post('/v1/chat/completions', body, caller);
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
}

const UPSTREAM_ERROR = {
  error: {
    message: 'The model failed to answer. Try again.',
    type: 'upstream_error',
    param: null,
    code: 'upstream_error',
  },
};

/** Sends an endless answer until the gateway closes the connection. */
const endlessly = (head: string, more: string) => (socket: Socket) => {
  const write = () => {
    while (!socket.destroyed && socket.write(more, 'latin1'));
  };
  socket.on('drain', write);
  socket.write(head, 'latin1');
  write();
};

const BROKEN: [name: string, answer: (socket: Socket) => void][] = [
  ['closes at once', (socket) => void socket.destroy()],
  ['sends nothing and ends', (socket) => void socket.end()],
  ['does not speak HTTP', say('SSH-2.0-OpenSSH_9.6\r\n')],
  ['answers with NUL bytes', say('\0'.repeat(100))],
  ['breaks off in its headers', say('HTTP/1.1 200 OK\r\nContent-Type: appl')],
  ['has endless headers', endlessly('HTTP/1.1 200 OK\r\n', `X-Pad: ${'a'.repeat(1_000)}\r\n`)],
  ['has a header of 1 MiB', say(JSON_HEAD, 'X-Pad: ', 'a'.repeat(MIB), '\r\n\r\n', WHOLE)],
  ['says 100 for ever', endlessly('', 'HTTP/1.1 100 Continue\r\n\r\n')],
  ['says 103 for ever', endlessly('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')],
  ['switches protocols', say('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello')],
  ['has no content', say('HTTP/1.1 204 No Content\r\n\r\n')],
  ['redirects', (socket) => say(`HTTP/1.1 307 T\r\nLocation: ${url()}/other\r\nContent-Length: 0\r\n\r\n`)(socket)],
  ['redirects permanently', say('HTTP/1.1 301 M\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n')],
  ['answers with HTML', say('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>')],
  ['answers with JSON as HTML', say('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n', WHOLE)],
  ['compresses', say(JSON_HEAD, 'Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08')],
  ['compresses without being asked', say(EVENTS, 'Content-Encoding: br\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08')],
  ['has two lengths', say(JSON_HEAD, 'Content-Length: 5\r\nContent-Length: 95\r\n\r\n', WHOLE)],
  ['has a length and chunks', say(JSON_HEAD, 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n', WHOLE)],
  ['has a negative length', say(JSON_HEAD, 'Content-Length: -1\r\n\r\n', WHOLE)],
  ['has an empty body', say(JSON_HEAD, 'Content-Length: 0\r\n\r\n')],
  ['fails', say('HTTP/1.1 500 No\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n/srv/a.py')],
  ['fails endlessly', endlessly('HTTP/1.1 500 No\r\n\r\n', 'Traceback '.repeat(1_000))],
];

/** With a duplicate member, so that the gateway must rewrite it. */
const deep = (levels: number) =>
  `{"choices":[{"index":0,"message":{"content":"a","content":"b","x":${'['.repeat(levels)}${']'.repeat(levels)}}}]}`;
const BROKEN_PLAIN: typeof BROKEN = [
  ['breaks off before its length', say(JSON_HEAD, 'Content-Length: 1000\r\n\r\n', WHOLE)],
  ['ends before its length', say(JSON_HEAD, `Content-Length: ${WHOLE.length - 1}\r\n\r\n`, WHOLE)],
  ['breaks off in a chunk', say(JSON_HEAD, 'Transfer-Encoding: chunked\r\n\r\n', 'ff\r\n', WHOLE)],
  ['has no last chunk', say(JSON_HEAD, 'Transfer-Encoding: chunked\r\n\r\n', chunked(WHOLE))],
  ['has chunks with an invalid size', say(JSON_HEAD, 'Transfer-Encoding: chunked\r\n\r\n', 'xyz\r\n', WHOLE)],
  ['has a million members', say(JSON_HEAD, '\r\n', `{"choices":[{"x":[${'{},'.repeat(MIB)}1]}]}`)],
  ['is nested', say(JSON_HEAD, '\r\n', deep(100_000))],
  ['is deeply nested', say(JSON_HEAD, '\r\n', deep(5_000))],
  ['is not JSON', say(JSON_HEAD, 'Content-Length: 3\r\n\r\n{"a')],
  ['answers with events', say(EVENTS, '\r\n', CHUNK, 'data: [DONE]\n\n')],
];

const STREAM = `${EVENTS}Transfer-Encoding: chunked\r\n\r\n`;
/** Sent after a valid chunk, or in its place. */
const GARBAGE: [name: string, garbage: string][] = [
  ['closes', ''],
  ['is a second status line outside the chunks', 'HTTP/1.1 500 Internal Server Error\r\n\r\n'],
  ['has chunks with an invalid size', 'zz\r\n\r\n'],
  ['has an endless chunk size', 'f'.repeat(100_000)],
  ['is not JSON', chunked('data: {"choices":[\n\n')],
  [
    'is a status line inside a chunk',
    chunked('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\ndata: x\n\n'),
  ],
  ['is binary', chunked('data: \0\xff\xfe\x80\r\0\n\n')],
  ['is not an object', chunked('data: 7\n\n')],
  ['is an error', chunked('data: {"error":{"message":"CUDA error at /srv/vllm/a.cu:7 on gpu7.local:8000"}}\n\n')],
  ['has no finish', chunked('data: [DONE]\n\n') + chunked('')],
  ['is an event of 7 MiB', chunked(`data: {"choices":[{"delta":{"content":"${'a'.repeat(7 * MIB)}"}}]}\n\n`)],
  ['is an endless line', chunked('a'.repeat(7 * MIB))],
  ['is nested', chunked(`data: {"choices":[{"index":0,"delta":{"x":${'['.repeat(5_000)}${']'.repeat(5_000)}}}]}\n\n`)],
];

/** Expects a complete event stream that ends with an error and `[DONE]`. Returns the texts. */
function readStream(text: string): string[] {
  expect(text.endsWith('\n\ndata: [DONE]\n\n')).toBe(true);
  const events = text.split('\n\n').slice(0, -1);
  for (const event of events) expect(event).toMatch(/^data: [^\n\r]*$/);
  expect(events.at(-1)).toBe('data: [DONE]');
  const parsed = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
  expect(parsed.at(-1)).toEqual(UPSTREAM_ERROR);
  return parsed.slice(0, -1).map(({ choices }) => choices[0].delta.content);
}

describe('an invalid answer', () => {
  it.each([
    ...BROKEN.flatMap(([name, how]) => [false, true].map((stream) => [name, stream, how] as const)),
    ...BROKEN_PLAIN.map(([name, how]) => [name, false, how] as const),
  ])('of a backend that %s (stream: %s) gets 502, is not retried, and costs nothing', async (_, stream, how) => {
    answer = how;
    const { status, type, text } = await ask(stream);
    expect([status, type, JSON.parse(text)]).toEqual([502, 'application/json', UPSTREAM_ERROR]);
    expect(asked).toBe(1);
    await expectSettledAt(gateway, caller, 0n);
  });

  it.each(GARBAGE)('that %s at the beginning of a stream gets 502 and costs nothing', async (_, garbage) => {
    answer = say(STREAM, garbage);
    const { status, text } = await ask(true);
    expect([status, JSON.parse(text)]).toEqual([502, UPSTREAM_ERROR]);
    await expectSettledAt(gateway, caller, 0n);
  });
});

describe('a stream that becomes invalid', () => {
  it.each(GARBAGE)(
    'ends with an error event and [DONE], and only delivered tokens are charged: %s',
    async (_, garbage) => {
      const who = await gateway.caller();
      // The client has received the valid chunk before the invalid bytes are sent.
      let spoil = () => {};
      answer = (socket) => {
        socket.write(STREAM + chunked(CHUNK), 'latin1');
        spoil = () => void socket.end(garbage, 'latin1');
      };
      const body = { model: 'broken', messages, max_tokens: 20, stream: true };
      const response = await gateway.post('/v1/chat/completions', body, who);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'text/event-stream; charset=utf-8',
      ]);
      const reader = response.body!.getReader();
      let text = '';
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text += Buffer.from(part.value).toString('utf8');
        if (text.includes('good ')) spoil();
      }
      expect(readStream(text)).toEqual(['good ']);
      const [event] = await gateway.events(who.tenantId, 1);
      expect(event).toMatchObject({ outcome: 'upstream_error', estimated: true });
    },
  );
});

describe('a valid stream in an unusual form', () => {
  it('is passed on with CR LF, byte by byte, with comments, and with 100,000 lines of data', async () => {
    const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\ndata: [DONE]\r\n\r\n`;
    const lines = `${'data:\r\n'.repeat(100_000)}${CHUNK.replaceAll('\n', '\r\n')}`;
    const stream = `: hello\r\n\r\n${CHUNK.replaceAll('\n', '\r\n')}${lines}${end}`;
    answer = (socket) => {
      socket.setNoDelay(true);
      socket.write(`${EVENTS}\r\n`);
      for (const byte of stream.slice(0, 300)) socket.write(byte, 'latin1');
      socket.end(stream.slice(300), 'latin1');
    };
    const { status, text } = await ask(true);
    expect(status).toBe(200);
    expect(text.match(/good /g)).toHaveLength(2);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(text).not.toContain('error');
  });
});

it('answers of 500 to token ids do not open a breaker, unless the model names its vocabulary', async () => {
  answer = say('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
  const open = async () => {
    const { values } = await metrics.getSingleMetric('tollgate_backend_open_breakers')!.get();
    return values.find(({ labels }) => labels['backend'] === url())?.value;
  };
  const complete = async (...prompt: number[]) =>
    (await gateway.post('/v1/completions', { model: 'broken', prompt }, caller)).status;
  const fail = async () => {
    for (let n = 0; n < FAILURES_THAT_OPEN; n++) expect(await complete(5, 7)).toBe(502);
  };
  gateway.setConfig(configYaml());
  await eventually(async () => expect(await open()).toBeUndefined());
  gateway.setConfig(yaml());
  await eventually(async () => expect(await complete(5, 8)).toBe(502));
  await fail();
  expect(await open()).toBe(0);
  gateway.setConfig(yaml(1, 8));
  await eventually(async () => expect(await complete(5, 8)).toBe(400));
  await fail();
  expect(await open()).toBe(1);
  gateway.setConfig(configYaml());
  await eventually(async () => expect(await open()).toBeUndefined());
  gateway.setConfig(yaml());
  await eventually(async () => expect(await complete(5, 8)).toBe(502));
});

it('an open breaker is in the metrics until the backend has no weight, or is not in the configuration', async () => {
  answer = say('HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n');
  const open = async () => {
    const { values } = await metrics.getSingleMetric('tollgate_backend_open_breakers')!.get();
    return values.find(({ labels }) => labels['backend'] === url())?.value;
  };
  for (let n = 0; n < FAILURES_THAT_OPEN; n++) await ask(false);
  expect(await open()).toBe(1);
  for (const [text, shown] of [
    [yaml(0), 0],
    [yaml(1), 1],
    [configYaml(), undefined],
  ] as const) {
    gateway.setConfig(text);
    await eventually(async () => expect(await open()).toBe(shown));
  }
});
