import { readFileSync } from 'node:fs';
import type { AdmissionStore } from '@tollgate/admission';
import type { Messages } from '@tollgate/messaging';
import { type ConfigSource, Health } from '@tollgate/runtime';
import { RawSocket } from '@tollgate/testing';
import { createOperatorApp } from '../operator.app';

const SECRET = 'the-operators-secret-in-tests';
let url: string;
let close: () => Promise<void>;
beforeAll(async () => {
  // No request in this file reaches a service.
  const seams = { messages: {} as Messages, config: {} as ConfigSource, admission: {} as AdmissionStore };
  const app = await createOperatorApp(seams, { secrets: [SECRET], health: new Health() });
  await app.listen(0, '127.0.0.1');
  url = await app.getUrl();
  close = () => app.close();
});
afterAll(() => close());

const AUTHORIZED = `Host: localhost\r\nAuthorization: Bearer ${SECRET}\r\n`;

it.each([
  ['a control character in a header', `GET /livez HTTP/1.1\r\n${AUTHORIZED}X: a\x01b\r\n\r\n`],
  ['two hosts', `GET /livez HTTP/1.1\r\n${AUTHORIZED}Host: y\r\n\r\n`],
  ['no host', 'GET /livez HTTP/1.1\r\n\r\n'],
  ['another version', `GET /livez HTTP/2.0\r\n${AUTHORIZED}\r\n`],
  [
    'two codings',
    `POST /_operator/v1/tenants HTTP/1.1\r\n${AUTHORIZED}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['no HTTP at all', 'NONSENSE\r\n\r\n'],
])('%s is refused in the envelope of the operator API', async (_, text) => {
  const answer = await new RawSocket(url).send(text).toEnd();
  expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-request-id: req_[\s\S]*connection: close/);
  expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toEqual({
    error: { code: 'invalid_request', message: expect.any(String) },
  });
});

it('an idle connection stays open for longer than the load balancer keeps it', async () => {
  const config = readFileSync('deploy/haproxy/haproxy.cfg', 'utf8');
  const balancerSeconds = Number(/^ *timeout http-keep-alive (\d+)s$/m.exec(config)![1]);
  const { headers } = await fetch(`${url}/livez`);
  expect(Number(/timeout=(\d+)/.exec(headers.get('keep-alive')!)![1])).toBeGreaterThan(balancerSeconds);
});

it('a client that waits for 100 Continue gets it', async () => {
  const request =
    `POST /_operator/v1/tenants HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n` +
    'Content-Length: 2\r\nExpect: 100-continue\r\n\r\n';
  const socket = new RawSocket(url).send(request);
  await socket.until('100 Continue\r\n\r\n');
  expect(await socket.send('{}').until('name_required')).toContain('HTTP/1.1 400 ');
  socket.destroy();
});

describe('no answer of the port is that of its framework', () => {
  const answerTo = async (text: string) => {
    const answer = await new RawSocket(url).send(text).toEnd();
    const [head, body] = answer.split('\r\n\r\n');
    expect(head).toMatch(/^x-request-id: [\w-]+\r?$/im);
    const { error } = JSON.parse(body!);
    expect(error).toEqual({ code: expect.any(String), message: expect.any(String) });
    return [Number(head!.slice(9, 12)), error.code];
  };
  const CLOSE = 'Connection: close\r\n';

  it.each([
    ['an unknown method', `PROPFIND /_operator/v1/tenants HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`, 405],
    ['an unknown method and path', `PURGE /nothing HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`, 404],
    ['QUERY without a body', `QUERY /_operator/v1/tenants HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`, 405],
    ['OPTIONS for the server', `OPTIONS * HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`, 404],
    ['an undecodable path', `GET /%zz HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`, 404],
    [
      'an id of any length',
      `GET /_operator/v1/requests/${'x'.repeat(5_000)} HTTP/1.1\r\n${AUTHORIZED}${CLOSE}\r\n`,
      404,
    ],
    [
      'a malformed media type',
      `POST /_operator/v1/tenants HTTP/1.1\r\n${AUTHORIZED}${CLOSE}` +
        'Content-Type: nonsense\r\nContent-Length: 2\r\n\r\n{}',
      415,
    ],
    ['another expectation', `GET /livez HTTP/1.1\r\n${AUTHORIZED}Expect: more\r\n\r\n`, 417],
    ['a large head', `GET /livez HTTP/1.1\r\n${AUTHORIZED}X: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s', async (_, text, status) => {
    expect((await answerTo(text))[0]).toBe(status);
  });

  it('a large body without the secret gets 401, and with it 413 before it is sent', async () => {
    const post = (authorization: string) =>
      `POST /_operator/v1/tenants HTTP/1.1\r\nHost: localhost\r\n${authorization}Content-Type: application/json\r\n` +
      'Content-Length: 70000\r\nExpect: 100-continue\r\n\r\n';
    expect(await answerTo(post(''))).toEqual([401, 'missing_credential']);
    expect(await answerTo(post(`Authorization: Bearer ${SECRET}\r\n`))).toEqual([413, 'payload_too_large']);
  });

  it('a malformed media type without the secret gets 401', async () => {
    const post = `POST /_operator/v1/tenants HTTP/1.1\r\nHost: localhost\r\n${CLOSE}Content-Type: nonsense\r\n`;
    expect(await answerTo(`${post}Content-Length: 2\r\n\r\n{}`)).toEqual([401, 'missing_credential']);
  });
});
