import { assertRuns, RawSocket } from '@tollgate/testing';
import * as fc from 'fast-check';
import type { Target } from './hostile.test';
import { answersOf, type RawAnswer } from './http-answers';
import { OPERATOR_SECRET, type Services } from '../services';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_122);
const RUNS = 300;
const SPLIT_RUNS = 40;
const SLOW_PEERS = 60;

/** Framings that two readers may understand differently. `N` stands for the length of the body. */
const AMBIGUOUS: readonly [title: string, headers: string][] = [
  ['a length and chunks', 'Content-Length: N\r\nTransfer-Encoding: chunked'],
  ['chunks and a length', 'Transfer-Encoding: chunked\r\nContent-Length: N'],
  ['two lengths', 'Content-Length: 0\r\nContent-Length: N'],
  ['the same length twice', 'Content-Length: N\r\nContent-Length: N'],
  ['a list of lengths', 'Content-Length: N, N'],
  ['a signed length', 'Content-Length: +N'],
  ['a negative length', 'Content-Length: -N'],
  ['a hexadecimal length', 'Content-Length: 0xN'],
  ['a length with an exponent', 'Content-Length: 1e1'],
  ['a length with a space inside', 'Content-Length: 1 N'],
  ['a length beyond 64 bits', 'Content-Length: 18446744073709551617'],
  ['an empty length', 'Content-Length:'],
  ['a space before the colon', 'Transfer-Encoding : chunked\r\nContent-Length: N'],
  ['a tab before the colon', 'Content-Length\t: N\r\nTransfer-Encoding: chunked'],
  ['an unknown coding', 'Transfer-Encoding: xchunked\r\nContent-Length: N'],
  ['a coding after chunked', 'Transfer-Encoding: chunked, identity\r\nContent-Length: N'],
  ['identity', 'Transfer-Encoding: identity\r\nContent-Length: N'],
  ['two lines of codings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
  ['a control character in the coding', 'Transfer-Encoding: \x0bchunked\r\nContent-Length: N'],
  ['a quoted coding', 'Transfer-Encoding: "chunked"\r\nContent-Length: N'],
  ['a folded coding', 'Transfer-Encoding:\r\n chunked\r\nContent-Length: N'],
  ['a bare line feed', 'X: y\nTransfer-Encoding: chunked\r\nContent-Length: N'],
  ['a bare carriage return', 'X: y\rTransfer-Encoding: chunked\r\nContent-Length: N'],
  ['a NUL in a header', 'X: \0\r\nTransfer-Encoding: chunked\r\nContent-Length: N'],
  ['a header without a colon', 'Transfer-Encoding\r\nContent-Length: N'],
  ['two hosts', 'Host: y\r\nContent-Length: N'],
];

/** Chunks that are not chunks. The smuggled request follows. */
const BAD_CHUNKS: readonly [title: string, chunks: string][] = [
  ['a size with a prefix', '0x0\r\n\r\n'],
  ['a signed size', '+0\r\n\r\n'],
  ['a negative size', '-1\r\n\r\n'],
  ['a size beyond 64 bits', '10000000000000000\r\n'],
  ['an empty size', '\r\n\r\n'],
  ['a size that ends in a bare line feed', '0\n\r\n'],
  ['a bare line feed in an extension', '1;x=\ny\r\nz\r\n0\r\n\r\n'],
  ['a chunk that is longer than its size', '1\r\nxyz\r\n0\r\n\r\n'],
  ['a chunk without an end', '1\r\nx0\r\n\r\n'],
];

export function hostileHttp(services: Services, target: Target): void {
  const ports = () => [
    {
      url: services.publicUrl,
      path: '/_api/v1/keys',
      credential: target.token,
      smuggled: smuggled('/_api/v1/keys', target.token),
    },
    {
      url: services.operatorUrl,
      path: '/_operator/v1/tenants',
      credential: OPERATOR_SECRET,
      smuggled: smuggled('/_operator/v1/tenants', OPERATOR_SECRET),
    },
  ];
  const post = ({ path, credential }: { path: string; credential: string }, headers: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${credential}\r\n` +
    `Content-Type: application/json\r\n${headers}\r\n\r\n${body}`;

  describe('a request whose body could be read as another request is refused, and its connection closed', () => {
    it.each(AMBIGUOUS)('%s', async (_, headers) => {
      for (const port of ports()) {
        // With chunks, the body ends at once. With a length, it is the smuggled request.
        const body = `0\r\n\r\n${port.smuggled}`;
        const text = post(port, headers.replaceAll('N', String(body.length)), body);
        await expectOneRefusal(port.url, text);
      }
    });

    it.each(BAD_CHUNKS)('%s', async (_, chunks) => {
      for (const port of ports())
        await expectOneRefusal(port.url, post(port, 'Transfer-Encoding: chunked', chunks + port.smuggled));
    });

    it('also if the framings come together, in any order and case', async () => {
      const framing = fc.constantFrom(...AMBIGUOUS.map(([, headers]) => headers));
      const cased = fc.infiniteStream(fc.boolean());
      await assertRuns(
        fc.asyncProperty(framing, framing, cased, fc.nat(1), async (one, other, upper, at) => {
          const port = ports()[at]!;
          const body = `0\r\n\r\n${port.smuggled}`;
          const headers = `${one}\r\n${other}`.replaceAll('N', String(body.length));
          const mixed = headers.replace(/[a-z]/gi, (letter) =>
            upper.next().value ? letter.toUpperCase() : letter.toLowerCase(),
          );
          await expectOneRefusal(port.url, post(port, mixed, body));
        }),
        { leastRuns: SPLIT_RUNS, seed: SEED },
      );
    });
  });

  const chat = (key: string, fields: object = {}) => {
    const body = JSON.stringify({
      model: 'sim-small',
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 2,
      ...fields,
    });
    return (
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    );
  };
  const get = (path: string, credential: string) =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${credential}\r\n\r\n`;
  /** The same request, after whose answer the connection closes. */
  const last = (text: string) => text.replace('Host:', 'Connection: close\r\nHost:');
  const ofOperator = () => ({ url: services.operatorUrl, text: get('/_operator/v1/tenants', OPERATOR_SECRET) });
  const ofPublic = (key: string) =>
    [chat(key), get('/v1/models', key), get('/_api/v1/usage', target.token)].map((text) => ({
      url: services.publicUrl,
      text,
    }));

  it('bytes that are changed, added or removed get complete answers, none of them 5xx', async () => {
    const change = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      removed: fc.nat(4),
      added: fc.oneof(fc.uint8Array({ maxLength: 6 }), fc.constantFrom('\r\n', '\r', '\n', ': ', ' ', '\0', '%', '//')),
    });
    const changes = fc.array(change, { minLength: 1, maxLength: 5 });
    await assertRuns(
      fc.asyncProperty(fc.nat(3), changes, async (which, list) => {
        const { url, text } = [...ofPublic(target.key), ofOperator()][which]!;
        let bytes = Buffer.from(last(text));
        for (const { at, removed, added } of list) {
          const from = Math.floor(at * bytes.length);
          bytes = Buffer.concat([bytes.subarray(0, from), Buffer.from(added), bytes.subarray(from + removed)]);
        }
        const socket = new RawSocket(url).send(bytes);
        // Then the port has had its turn. If it waits for more bytes, there are none.
        await exchange(url, [Buffer.from(last(get('/v1/models', target.goodKey)))]);
        for (const answer of answersOf(await socket.end().toEnd())) expectAnswer(answer);
      }),
      { leastRuns: RUNS, seed: SEED },
    );
  });

  it('a peer that sends in small pieces gets the answers of one that sends at once', async () => {
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 12 });
    const sent = () => [...ofPublic(target.goodKey).map(({ text }) => text), chat(target.goodKey, { stream: true })];
    const several = fc.array(fc.nat(3), { minLength: 1, maxLength: 3 });
    await assertRuns(
      fc.asyncProperty(several, cuts, async (which, at) => {
        const texts = which.map((index) => sent()[index]!);
        const text = Buffer.from([...texts.slice(0, -1), last(texts.at(-1)!)].join(''));
        const ends = [...at.map((part) => Math.floor(part * text.length)).sort((a, b) => a - b), text.length];
        const pieces = ends.map((end, index) => text.subarray(ends[index - 1] ?? 0, end));
        const answers = await exchange(services.publicUrl, pieces);
        expect(answers.map(({ status }) => status)).toEqual(which.map(() => 200));
      }),
      { leastRuns: SPLIT_RUNS, seed: SEED },
    );
  });

  it('peers that stop in the middle of a head or a body disturb no other', async () => {
    const text = chat(target.goodKey);
    const peers = Array.from({ length: SLOW_PEERS }, (_, index) =>
      new RawSocket(services.publicUrl).send(text.slice(0, Math.floor((text.length * (index + 1)) / (SLOW_PEERS + 1)))),
    );
    const [answer] = await exchange(services.publicUrl, [Buffer.from(last(text))]);
    expect(answer!.status).toBe(200);
    for (const peer of peers) {
      // 408 only on a machine that stood still.
      expect(peer.text).toMatch(/^$|^HTTP\/1\.1 408 /);
      peer.destroy();
    }
  });
}

/** A whole request that must never be executed. */
function smuggled(path: string, credential: string): string {
  const body = '{"name":"smuggled"}';
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${credential}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Sends the pieces one after the other, and reads all answers until the connection closes. */
async function exchange(url: string, pieces: readonly Buffer[]): Promise<RawAnswer[]> {
  const socket = new RawSocket(url);
  for (const piece of pieces) {
    socket.send(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return answersOf(await socket.toEnd());
}

async function expectOneRefusal(url: string, text: string): Promise<void> {
  const answers = await exchange(url, [Buffer.from(text, 'latin1')]);
  expect([text, answers.map(({ status }) => status)]).toEqual([text, [400]]);
  expectAnswer(answers[0]!);
  expect(answers[0]!.headers['connection']).toBe('close');
}

function expectAnswer({ status, headers, body }: RawAnswer): void {
  expect(status).toBeLessThan(500);
  if (status < 400) return;
  expect(headers['x-request-id']).toMatch(/^[\w-]{1,64}$/);
  if (body !== '') expect(JSON.parse(body)).toMatchObject({ error: { message: expect.any(String) } });
}
