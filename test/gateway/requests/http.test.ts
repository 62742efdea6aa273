import { mintCredential } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { InferenceError, INFERENCE_ERRORS } from '../../../apps/gateway/src/inference-errors';
import { stopOf } from '../../../apps/gateway/src';
import { rawAnswer, streamUntilEnd } from './sockets';
import { type Caller, configYaml, useGateway } from '../use-gateway';

const gateway = useGateway({ simulator: { recordRequests: 10 } });
const messages = [{ role: 'user', content: 'Hello' }];
const CHAT = { model: 'small', messages, max_tokens: 2 };
let caller: Caller;
beforeAll(async () => {
  caller = await gateway.caller();
});

async function read(answer: Response) {
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, json: text === '' ? null : JSON.parse(text) };
}

const ask = async (body: unknown, path = '/v1/chat/completions', init: RequestInit = {}, who = caller) =>
  read(await gateway.post(path, body, who, init));

const refusal = (code: keyof typeof INFERENCE_ERRORS, param: string | null = null) => ({
  error: { message: expect.any(String), type: INFERENCE_ERRORS[code].type, param, code },
});

describe('the request to the backend', () => {
  it('has the validated fields, the backend’s model name, and the held output under both its names', async () => {
    const fields = { metadata: { note: 'é' }, logit_bias: { 5: 1 }, n: 1, top_k: 3 };
    const asked = {
      ...CHAT,
      max_tokens: undefined,
      max_completion_tokens: 7,
      temperature: null,
      stop: null,
      ...fields,
    };
    const { status } = await ask(asked);
    expect(status).toBe(200);
    const { path, body } = gateway.simulator.requests().at(-1)!;
    const held = { max_tokens: 7, max_completion_tokens: 7 };
    expect([path, body]).toEqual(['/v1/chat/completions', { ...fields, messages, model: 'inner-small', ...held }]);
    expect(JSON.stringify(gateway.simulator.requests())).not.toContain(caller.key);
  });

  it('has images if the model accepts them', async () => {
    const content = [
      { type: 'text', text: 'what is it?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(20_000)}` } },
    ];
    const { status, json } = await ask({ model: 'eyes', messages: [{ role: 'user', content }], max_tokens: 2 });
    expect([status, json.usage?.completion_tokens]).toEqual([200, 2]);
  });
});

describe('a key', () => {
  const { value: unknown } = mintCredential('key');
  it.each([
    [undefined, 'missing_api_key'],
    ['', 'missing_api_key'],
    ['Bearer', 'missing_api_key'],
    ['Bearer ', 'missing_api_key'],
    ['Basic abc', 'missing_api_key'],
    ['Bearer x', 'invalid_api_key'],
    ['Bearer a b', 'invalid_api_key'],
    [`Bearer ${mintCredential('token').value}`, 'invalid_api_key'],
    [`Bearer ${unknown}`, 'invalid_api_key'],
    [`Bearer ${unknown.slice(0, -1)}!`, 'invalid_api_key'],
  ] as const)('is missing or invalid with Authorization %j: 401 %s', async (authorization, code) => {
    for (const [path, method] of [
      ['/v1/models', 'GET'],
      ['/v1/chat/completions', 'POST'],
    ] as const) {
      const answer = await read(
        await fetch(gateway.url + path, { method, headers: authorization === undefined ? {} : { authorization } }),
      );
      expect([answer.status, answer.json]).toEqual([401, refusal(code)]);
    }
  });

  it('is refused with a hint if it is a management token', async () => {
    const headers = { authorization: `Bearer ${mintCredential('token').value}` };
    const { json } = await read(await fetch(`${gateway.url}/v1/models`, { headers }));
    expect(json.error.message).toContain('Send an inference key (sk-svc-…)');
  });

  it('is refused if it is revoked or expired, or if its profile no longer exists', async () => {
    for (const change of [{ revokedAtMs: 1 }, { expiresAtMs: Date.now() - 1 }, { profile: 'gone' }, { plan: 'gone' }]) {
      const other = await gateway.caller();
      await gateway.credentials.put([{ ...other.record, ...change, version: 2 }]);
      await eventually(async () => {
        const answer = await ask(CHAT, undefined, {}, other);
        expect([answer.status, answer.json]).toEqual([401, refusal('invalid_api_key')]);
      });
    }
  });

  it('sees and uses only the models of its profile', async () => {
    const limited = await gateway.caller({ profile: 'one-model' });
    expect((await limited.openai.models.list()).data.map(({ id }) => id)).toEqual(['small']);
    const hidden = await ask({ ...CHAT, model: 'long' }, undefined, {}, limited);
    const none = await ask({ ...CHAT, model: 'nowhere' }, undefined, {}, limited);
    expect([hidden.status, hidden.json, none.status, none.json]).toEqual([
      404,
      refusal('model_not_found', 'model'),
      404,
      refusal('model_not_found', 'model'),
    ]);
  });
});

describe('the surface', () => {
  it.each([
    ['GET', '/nowhere', 404, 'route_not_found'],
    ['POST', '/v1/nowhere', 404, 'route_not_found'],
    ['GET', '/%zz', 404, 'route_not_found'],
    ['GET', '/v1/models/%zz', 404, 'route_not_found'],
    ['GET', '/v1/chat/completions', 405, 'method_not_allowed'],
    ['DELETE', '/models', 405, 'method_not_allowed'],
    ['POST', '/v1/models/org/small', 405, 'method_not_allowed'],
    ['PUT', '/v1/embeddings?x=1', 405, 'method_not_allowed'],
    ['OPTIONS', '/completions', 405, 'method_not_allowed'],
    ['GET', '/v1/completion%73', 405, 'method_not_allowed'],
    ['POST', '/v1/models/%zz', 404, 'route_not_found'],
    ['GET', '/v1/models/', 404, 'route_not_found'],
  ] as const)('answers %s %s with %i', async (method, path, status, code) => {
    const answer = await read(await fetch(gateway.url + path, { method, ...(method === 'POST' && { body: 'text' }) }));
    expect([answer.status, answer.json]).toEqual([status, refusal(code)]);
    if (status === 405) expect(answer.headers.get('allow')).toBe(path.includes('models') ? 'GET, HEAD' : 'POST');
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
  });

  it.each([
    ['/v1/chat/completions', 'POST', '"type":"invalid_request_error"'],
    ['/_api/v1/keys', 'GET, HEAD, POST', '{"error":{"code":"method_not_allowed"'],
  ])('answers a whole URL as its path: 405 for PUT %s', async (path, allow, envelope) => {
    const answer = await rawAnswer(gateway, `PUT http://tollgate${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(answer).toContain('HTTP/1.1 405 ');
    expect(answer).toContain(`allow: ${allow}\r\n`);
    expect(answer).toContain(envelope);
  });

  it('unknown paths of the management API answer in its own envelope', async () => {
    const answer = await read(await fetch(`${gateway.url}/_api/v1/nowhere`));
    expect([answer.status, answer.json]).toEqual([404, { error: { code: 'not_found', message: expect.any(String) } }]);
    const large = await read(await fetch(`${gateway.url}/_api/v1/keys`, { method: 'POST', body: 'x'.repeat(70_000) }));
    expect([large.status, large.json.error.code]).toEqual([401, 'missing_credential']);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'nonsense', ''])(
    'answers the media type %j with 415',
    async (type) => {
      const init = { headers: { 'content-type': type } };
      const { status, json, headers } = await ask(CHAT, undefined, init);
      expect([status, json]).toEqual([415, refusal('unsupported_media_type')]);
      expect(headers.get('x-ratelimit-limit-requests')).toMatch(/^\d+$/);
      const stranger = await ask(CHAT, undefined, init, { ...caller, key: 'x' });
      expect([stranger.status, stranger.json]).toEqual([401, refusal('invalid_api_key')]);
    },
  );

  it('a body over 10 MiB gets 413, with or without a length, and one of 10 MiB is read', async () => {
    const large = JSON.stringify({ ...CHAT, padding: 'x'.repeat(10 * 1024 * 1024) });
    expect((await ask(large)).status).toBe(413);
    const size = Buffer.byteLength(large).toString(16);
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'Host: x',
      `Authorization: Bearer ${caller.key}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
    ].join('\r\n');
    expect(await rawAnswer(gateway, `${head}\r\n\r\n${size}\r\n${large}\r\n0\r\n\r\n`)).toContain(
      '"payload_too_large"',
    );
    const url = `data:image/png;base64,${'A'.repeat(10 * 1024 * 1024 - 200)}`;
    const content = [{ type: 'image_url', image_url: { url } }];
    const largest = { model: 'eyes', messages: [{ role: 'user', content }], max_tokens: 2 };
    expect((await ask(JSON.stringify(largest))).status).toBe(200);
  });

  it('invalid HTTP is answered in the envelope', async () => {
    expect(await rawAnswer(gateway, 'NONSENSE\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_[\s\S]*"invalid_request_error"/,
    );
    expect(await rawAnswer(gateway, `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 [\s\S]*"invalid_request_error"/,
    );
  });

  it('x-request-id is the caller’s if it is valid, and is on every answer', async () => {
    const given = async (id: string, body: object = CHAT) =>
      (await ask(body, undefined, { headers: { 'x-request-id': id } })).headers.get('x-request-id');
    expect(await given('my-id_1')).toBe('my-id_1');
    expect(await given('my-id_1', {})).toBe('my-id_1');
    expect(await given('a b')).toMatch(/^req_[0-9a-z]{26}$/);
    expect(await given('x'.repeat(65))).toMatch(/^req_/);
    expect(await given(caller.key)).toMatch(/^req_/);
    const management = await fetch(`${gateway.url}/_api/v1/keys`, { headers: { 'x-request-id': 'm-1' } });
    expect(management.headers.get('x-request-id')).toBe('m-1');
  });

  it('x-tollgate-request-id is our own id on every answer, whatever the caller sends', async () => {
    const ids = new Set<string>();
    for (const given of ['mine', 'mine', 'a b', undefined]) {
      const headers = { ...(given && { 'x-request-id': given }) };
      const answers = [
        (await ask(CHAT, undefined, { headers })).headers,
        (await ask({}, undefined, { headers })).headers,
        (await gateway.post('/v1/chat/completions', { ...CHAT, stream: true }, caller, { headers })).headers,
        ...(await Promise.all(
          ['/v1/models', '/v1/nothing', '/_api/v1/keys', '/_api/v1/nothing', '/docs', '/%zz'].map(
            async (path) => (await fetch(gateway.url + path, { headers })).headers,
          ),
        )),
      ];
      for (const answer of answers) {
        const own = answer.get('x-tollgate-request-id');
        expect(own).toMatch(/^req_[0-9a-z]{26}$/);
        if (given !== 'mine') expect(answer.get('x-request-id')).toBe(own);
        ids.add(own!);
      }
    }
    expect(ids.size).toBe(4 * 9);
    const chat = await ask(CHAT, undefined, { headers: { 'x-request-id': 'mine' } });
    expect(chat.json.id).toBe(`chatcmpl-${chat.headers.get('x-tollgate-request-id')!.slice('req_'.length)}`);
  });
});

describe('the running process', () => {
  it('uses a changed configuration without a restart, and running requests finish with the old one', async () => {
    const slow = ask({ ...CHAT, simulator: { firstTokenDelayMs: 250 } });
    gateway.setConfig(configYaml().replace('id: long', 'id: risen, tokenizer: r50k_base'));
    await eventually(async () =>
      expect((await caller.openai.models.list()).data.map(({ id }) => id)).toContain('risen'),
    );
    expect((await slow).status).toBe(200);
  });

  it('has a status and a type of the contract for each code of the error table', () => {
    for (const code of Object.keys(INFERENCE_ERRORS) as (keyof typeof INFERENCE_ERRORS)[]) {
      const error = new InferenceError(code);
      expect(JSON.parse(error.toBody())).toEqual(refusal(code));
    }
    const types = Object.fromEntries(Object.values(INFERENCE_ERRORS).map(({ status, type }) => [status, type]));
    expect(types).toMatchObject({
      400: 'invalid_request_error',
      401: 'authentication_error',
      402: 'billing_error',
      404: 'invalid_request_error',
      429: 'rate_limit_error',
      500: 'api_error',
      502: 'upstream_error',
      503: 'overloaded_error',
      504: 'timeout_error',
    });
  });

  it('serves on after a stop signal, and its answers end their connections so that clients go elsewhere', async () => {
    expect((await ask(CHAT)).headers.get('connection')).toBe('keep-alive');
    const begun = streamUntilEnd(gateway, caller, { ...CHAT, simulator: { firstTokenDelayMs: 3_000 } });
    await eventually(async () => expect((await gateway.snapshot(caller.tenantId)).pendingHolds).toBe(1));
    stopOf(gateway.app).leave();
    const plain = await ask(CHAT);
    expect([plain.status, plain.headers.get('connection')]).toEqual([200, 'close']);
    const streamed = await gateway.post('/v1/chat/completions', { ...CHAT, stream: true }, caller, {});
    expect([streamed.status, streamed.headers.get('connection')]).toEqual([200, 'close']);
    expect(await streamed.text()).toContain('data: [DONE]');
    // It began before the signal, so only the end of the connection can tell its client, which sends nothing more.
    const text = await begun;
    expect(text).toMatch(/^HTTP\/1\.1 200 .*connection: keep-alive.*data: \[DONE\]/is);
  });

  it('answers running requests during a drain and closes their connections', async () => {
    const slow = ask({ ...CHAT, simulator: { firstTokenDelayMs: 4_000 } });
    await eventually(async () => expect((await gateway.snapshot(caller.tenantId)).pendingHolds).toBe(1));
    const drained = stopOf(gateway.app).drain(20_000);
    expect((await slow).status).toBe(200);
    expect(await drained).toBe(true);
    expect((await ask(CHAT)).headers.get('connection')).toBe('close');
  });
});
