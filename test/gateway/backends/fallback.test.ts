import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { eventually } from '@tollgate/testing';
import { useOwnBackend } from './own-backend';
import { type Caller, expectSettledAt, PLENTY, useGateway } from '../use-gateway';

/** The nanos of a token. */
const OWN = { input: 1_000n, output: 2_000n };
const DEAR = { input: 10_000n, output: 20_000n };
const limits = JSON.stringify(PLENTY);

let answer: (response: ServerResponse, headers: IncomingHttpHeaders, asked: { model: string }) => void;
const own = useOwnBackend(
  'own',
  (request, response) => {
    void json(request).then((body) => answer(response, request.headers, body as { model: string }));
  },
  () => `
  - { id: first, aliases: [gpt], kind: chat, contextTokens: 8192, maxOutputTokens: 4096, fallback: [little, dear],
      passthrough: [simulator], price: { input: '1', output: '2' }, backends: [{ url: 'http://BACKEND/v1' }] }
  - { id: claimed, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, fallback: [dear],
      price: { input: '1', output: '2' }, backends: [{ url: 'http://BACKEND/v1' }] }
  - { id: works, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, fallback: [dear],
      price: { input: '1', output: '2' }, backends: [{ url: 'http://BACKEND/v1' }] }
  - { id: locked, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, fallback: [dear],
      price: { input: '1', output: '2' }, backends: [{ url: 'http://BACKEND/v1' }] }
  - { id: little, kind: chat, contextTokens: 8,
      price: { input: '1', output: '2' }, backends: [{ url: 'simulator:', model: inner-little }] }
  - { id: brief, kind: chat, contextTokens: 8192, maxOutputTokens: 100,
      price: { input: '1', output: '2' }, backends: [{ url: 'http://BACKEND/v1', model: inner-brief }] }
  - { id: dear, kind: chat, contextTokens: 8192, maxOutputTokens: 2048, tools: false,
      price: { input: '10', output: '20' }, backends: [{ url: 'simulator:', model: inner-dear }] }`,
);
const gateway = useGateway({
  yaml: () => {
    const [, host] = /url: 'http:\/\/([^/']+)\/v1'/.exec(own())!;
    const plans = `
  - id: narrow
    limits: ${limits}
    profiles: [{ id: default, models: [first], limits: ${limits} }]`;
    return own().replaceAll('BACKEND', host!) + plans;
  },
  idempotency: { secrets: ['a-secret-that-the-store-never-sees-0123456789'] },
});

const CHAT = { model: 'first', messages: [{ role: 'user', content: 'Say something about gateways.' }], max_tokens: 50 };
const CHAT_OF_WORKS = { ...CHAT, model: 'works' };
const fail = (response: ServerResponse) => void response.writeHead(500).end('{}');
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const chunk = (content: string) => event({ choices: [{ index: 0, delta: { content } }] });

async function ask(caller: Caller, fields: object = {}) {
  const response = await gateway.post('/v1/chat/completions', { ...CHAT, ...fields }, caller);
  const text = await response.text();
  return { status: response.status, text, id: response.headers.get('x-tollgate-request-id') };
}

describe('a model that no backend serves', () => {
  it.each([
    ['first', false],
    ['gpt', false],
    ['first', true],
  ])(
    'is served by its fallback, which the answer names and whose price is charged (%s, stream: %s)',
    async (...args) => {
      const [model, stream] = args;
      answer = fail;
      const caller = await gateway.caller();
      const { status, text, id } = await ask(caller, { model, stream });
      expect(status).toBe(200);
      const frames = stream ? text.split('\n\n').filter((frame) => frame.startsWith('data: {')) : [`data: ${text}`];
      const parts = frames.map((frame) => JSON.parse(frame.slice(6)));
      expect(new Set(parts.map((part) => part.model))).toEqual(new Set(['dear']));
      const { usage } = parts.at(-1)!;
      const [charged] = await gateway.events(caller.tenantId, 1);
      const cost = BigInt(usage.prompt_tokens) * DEAR.input + BigInt(usage.completion_tokens) * DEAR.output;
      expect(charged).toMatchObject({
        id,
        model: 'dear',
        costNanos: String(cost),
        overrunNanos: '0',
        estimated: false,
        life: { asked: 'first' },
      });
      expect(charged!.price.outputFemtos).toBe(String(DEAR.output * 1_000_000n));
      await expectSettledAt(gateway, caller, cost);
    },
  );

  it.each([
    ['it has no credit for the more expensive one', { nanos: 400_000n }, {}],
    ['the profile of its key may not use the other', { plan: 'narrow' }, {}],
    ['its key may not use the other', { models: ['first', 'little'] }, {}],
    ['the other cannot use tools', {}, { tools: [{ type: 'function', function: { name: 'f' } }] }],
    ['the other gives less output than it names', {}, { max_tokens: 3_000 }],
  ])('is answered with its own failure, and nothing is charged, if %s', async (_, caller, fields) => {
    answer = fail;
    const who = await gateway.caller(caller);
    expect((await ask(who, fields)).status).toBe(502);
    expect(await gateway.snapshot(who.tenantId)).toMatchObject({ pendingNanos: 0n, settledNanos: 0n });
  });

  it('is served by its fallback too if the request names no output', async () => {
    answer = fail;
    const caller = await gateway.caller();
    expect((await ask(caller, { max_tokens: undefined })).status).toBe(200);
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ model: 'dear' });
  });

  it('is streamed by its fallback beyond the first slice of its hold, which is extended at that price', async () => {
    answer = fail;
    const caller = await gateway.caller();
    const tokens = 2_000;
    const fields = { stream: true, max_tokens: tokens, simulator: { answerTokens: tokens } };
    expect((await ask(caller, fields)).status).toBe(200);
    const [charged] = await gateway.events(caller.tenantId, 1);
    expect(charged).toMatchObject({ model: 'dear', completionTokens: tokens, outcome: 'complete', overrunNanos: '0' });
    expect(charged!.life!.extensions).toBeGreaterThan(0);
    const cost = BigInt(charged!.promptTokens) * DEAR.input + BigInt(tokens) * DEAR.output;
    expect(BigInt(charged!.costNanos)).toBe(cost);
    expect(BigInt(charged!.life!.endNanos!)).toBeGreaterThanOrEqual(cost);
    await expectSettledAt(gateway, caller, cost);
  });

  it('is claimed by its Idempotency-Key, runs once, and repeats get the answer of the fallback', async () => {
    const open: ServerResponse[] = [];
    answer = (response) => void open.push(response);
    const caller = await gateway.caller();
    const headers = { 'idempotency-key': 'first-and-only' };
    const send = async () => {
      const response = await gateway.post('/v1/chat/completions', { ...CHAT, model: 'claimed' }, caller, { headers });
      return {
        status: response.status,
        replayed: response.headers.get('idempotent-replayed'),
        text: await response.text(),
      };
    };
    const first = send();
    await eventually(() => expect(open).toHaveLength(1));
    const early = await send();
    expect([early.status, early.text]).toEqual([409, expect.stringContaining('idempotency_in_progress')]);
    fail(open[0]!);
    const { status, text } = await first;
    expect([status, JSON.parse(text).model]).toEqual([200, 'dear']);
    expect(await send()).toEqual({ status: 200, replayed: 'true', text });
    expect(open).toHaveLength(1);
    const [charged] = await gateway.events(caller.tenantId, 1);
    await expectSettledAt(gateway, caller, BigInt(charged!.costNanos));
  });
});

it('a backend gets our own id of the request, and the trace of the caller', async () => {
  let given: IncomingHttpHeaders = {};
  answer = (response, headers) => {
    given = headers;
    fail(response);
  };
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = { 'x-request-id': 'mine', traceparent, tracestate: 'a=1' };
  const response = await gateway.post('/v1/chat/completions', CHAT_OF_WORKS, await gateway.caller(), { headers });
  expect(response.headers.get('x-request-id')).toBe('mine');
  const id = response.headers.get('x-tollgate-request-id');
  expect(given).toMatchObject({ 'x-request-id': id, traceparent, tracestate: 'a=1' });
  await response.text();
});

describe('a model with a more expensive fallback', () => {
  it('holds the price of the more expensive one while it runs, and is charged its own', async () => {
    const open: ServerResponse[] = [];
    answer = (response) => void open.push(response);
    const caller = await gateway.caller();
    const asked = ask(caller, { model: 'works' });
    await eventually(() => expect(open).toHaveLength(1));
    const { pendingNanos } = await gateway.snapshot(caller.tenantId);
    expect(pendingNanos).toBeGreaterThan(50n * DEAR.output);
    const usage = { prompt_tokens: 12, completion_tokens: 1, total_tokens: 13 };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }];
    open[0]!.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, usage }));
    const { status, text } = await asked;
    expect([status, JSON.parse(text).model]).toEqual([200, 'works']);
    expect((await gateway.events(caller.tenantId, 1))[0]!.life).not.toHaveProperty('asked');
    const { prompt_tokens: prompt, completion_tokens: output } = JSON.parse(text).usage;
    await expectSettledAt(gateway, caller, BigInt(prompt) * OWN.input + BigInt(output) * OWN.output);
  });

  it('leaves the rest of the credit to others, if the credit does not pay for the more expensive one', async () => {
    const open: ServerResponse[] = [];
    answer = (response) => void open.push(response);
    const caller = await gateway.caller({ nanos: 25_000_000n });
    // Its bytes leave no room for the output, so it is counted before the admission.
    const messages = [{ role: 'user', content: 'Say something about gateways. '.repeat(170) }];
    const ofWorks = { model: 'works', messages, max_tokens: undefined };
    const asked = [ask(caller, ofWorks), ask(caller, ofWorks)];
    await eventually(() => expect(open).toHaveLength(2));
    const { pendingNanos } = await gateway.snapshot(caller.tenantId);
    expect(pendingNanos).toBeLessThan(2n * (1_300n * OWN.input + 4_096n * OWN.output));
    open.forEach(fail);
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([502, 502]);
  });

  it('is served by it after many requests too, if the credit pays for it beside the counted prompt', async () => {
    answer = (response, _, { model }) => {
      if (model !== 'inner-brief') return void response.writeHead(401).end('{}');
      const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }];
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices, usage }));
    };
    // About 11 M nanos for a request below, and 60 M by its bytes.
    const caller = await gateway.caller({ nanos: 40_000_000n });
    // From now on prompts are not counted in any case.
    for (let n = 0; n < 64; n++) expect((await ask(caller, { model: 'brief', max_tokens: 1 })).status).toBe(200);
    const messages = [{ role: 'user', content: 'words '.repeat(1_000) }];
    for (let n = 0; n < 2; n++) {
      const { status, text } = await ask(caller, { model: 'locked', messages });
      expect([status, JSON.parse(text).model]).toEqual([200, 'dear']);
    }
  });

  it('gets as much output as its own price allows, if the credit does not pay for the more expensive one', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let n = 0; n < 150; n++) response.write(chunk(' word'));
      response.write(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }));
      response.end('data: [DONE]\n\n');
    };
    const caller = await gateway.caller({ nanos: 400_000n });
    const { text } = await ask(caller, { model: 'works', stream: true, max_tokens: 150 });
    expect(text.match(/ word/g)).toHaveLength(150);
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ model: 'works', completionTokens: 150 });
  });

  it('is not continued by it once output has reached the client', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk('One'), () => response.destroy());
    };
    const caller = await gateway.caller();
    const { text } = await ask(caller, { model: 'works', stream: true });
    expect(text).toContain('upstream_error');
    const [charged] = await gateway.events(caller.tenantId, 1);
    expect(charged).toMatchObject({ model: 'works', outcome: 'upstream_error', completionTokens: 1 });
  });
});
