import { eventually } from '@tollgate/testing';
import { countTokens } from '../../apps/gateway/src/prompt/tokenizer';
import { answers, finish, type Play, streams, usage, usePlayedBackend } from './played-backend';
import { type Caller, expectSettledAt, useGateway } from './use-gateway';

const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: vectors, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: '${url}' }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
const messages = [{ role: 'user', content: 'Say something about gateways.' }];
const CAP = 100;
const LONG = Array.from({ length: 300 }, (_, i) => ` word${i % 7}`).join('');
const count = (text: string) => countTokens('o200k_base', text);

async function ask(caller: Caller, play: Play, fields: object = {}, path = '/v1/chat/completions') {
  backend.state.play = play;
  return gateway.post(path, { model: 'own', messages, max_tokens: CAP, ...fields }, caller);
}

interface Chunk {
  choices: { index: number; delta: { content?: string | null }; text?: string; finish_reason: string | null }[];
  usage?: { completion_tokens: number };
}

/** The chunks that the client read. `[DONE]` must be the last event. */
function read(text: string): { chunks: Chunk[]; content: string } {
  const events = text.split('\n\n').slice(0, -1);
  expect(events.at(-1)).toBe('data: [DONE]');
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)) as Chunk);
  const contents = chunks.flatMap(({ choices }) => choices ?? []).map(({ delta, text }) => text ?? delta.content ?? '');
  return { chunks, content: contents.join('') };
}

async function expectCutAtCap(caller: Caller, text: string): Promise<string> {
  const { chunks, content } = read(text);
  expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: CAP } });
  const [event] = await gateway.events(caller.tenantId, 1);
  expect(event).toMatchObject({ outcome: 'complete', completionTokens: CAP, estimated: true, overrunNanos: '0' });
  return content;
}

describe('a stream with more tokens than requested', () => {
  it('ends exactly at its cap with length, usage and [DONE], and its backend is stopped', async () => {
    const caller = await gateway.caller();
    const before = backend.state.closed;
    const words = Array.from({ length: 3 * CAP }, () => ({ delta: { content: ' word' } }));
    const text = await (await ask(caller, streams(words, null, true), { stream: true })).text();
    expect(await expectCutAtCap(caller, text)).toBe(' word'.repeat(CAP));
    await eventually(() => expect(backend.state.closed).toBe(before + 1));
  });

  it.each([
    ['a chunk', [{ delta: { content: LONG } }], finish()],
    ['the finishing chunk', [], finish({}, { delta: { content: LONG } })],
  ])('is cut within the text of %s', async (_, chunks, end) => {
    const caller = await gateway.caller();
    const text = await (await ask(caller, streams(chunks, end), { stream: true })).text();
    const content = await expectCutAtCap(caller, text);
    expect([LONG.startsWith(content), count(content)]).toEqual([true, CAP]);
  });

  it('ends before a chunk that cannot be cut', async () => {
    const caller = await gateway.caller();
    const call = { delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: LONG } }] } };
    const play = streams([{ delta: { content: ' word' } }, call], finish());
    const { chunks, content } = read(await (await ask(caller, play, { stream: true })).text());
    expect(content).toBe(' word');
    expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 1 } });
  });

  it('ends at its cap as a legacy completion too', async () => {
    const caller = await gateway.caller();
    const play = streams([{ text: LONG }, { text: LONG }], finish());
    const fields = { stream: true, prompt: 'x', messages: undefined };
    await expectCutAtCap(caller, await (await ask(caller, play, fields, '/v1/completions')).text());
  });
});

describe('a stream with the requested number of tokens', () => {
  it('is passed on completely, with its own end and usage', async () => {
    const caller = await gateway.caller();
    const words = Array.from({ length: CAP }, () => ({ delta: { content: ' word' } }));
    const play = streams(
      [{ delta: { role: 'assistant', content: '' } }, ...words, { delta: {} }],
      finish(usage(13, CAP), { finish_reason: 'length' }),
    );
    const { content, chunks } = read(await (await ask(caller, play, { stream: true })).text());
    expect(content).toBe(' word'.repeat(CAP));
    expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: CAP } });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', completionTokens: CAP, estimated: false });
  });

  it('is passed on completely even if its text has no blanks that separate tokens', async () => {
    const caller = await gateway.caller();
    const sentence = '昨天我们去了北京的国家大剧院，观看了一场由著名编舞家创作的新芭蕾舞剧。这场演出非常精彩';
    const text = sentence.repeat(80);
    const parts = text.match(/.{1,3}/gsu)!;
    const max = count(text);
    expect(Buffer.byteLength(text)).toBeGreaterThan(8 * 1024);
    const play = streams(
      parts.map((content) => ({ delta: { content } })),
      finish(usage(13, max)),
    );
    const { content } = read(await (await ask(caller, play, { stream: true, max_tokens: max })).text());
    expect(content).toBe(text);
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ completionTokens: max, estimated: false });
  });
});

describe('every text of a stream', () => {
  const carriers: [string, (word: string) => object][] = [
    ['delta.thinking', (thinking) => ({ delta: { thinking } })],
    ['delta.reasoning', (reasoning) => ({ delta: { reasoning } })],
    ['delta.reasoning_details', (text) => ({ delta: { reasoning_details: [{ type: 'reasoning.text', text }] } })],
    ['delta.thinking_blocks', (thinking) => ({ delta: { thinking_blocks: [{ type: 'thinking', thinking }] } })],
    ['parts of content', (text) => ({ delta: { content: [{ type: 'text', text }] } })],
    ['delta.refusal', (refusal) => ({ delta: { refusal } })],
    ['delta.audio', (transcript) => ({ delta: { audio: { id: 'a', transcript } } })],
    ['a custom tool', (input) => ({ delta: { tool_calls: [{ index: 0, type: 'custom', custom: { input } }] } })],
    ['delta.role', (role) => ({ delta: { role } })],
    ['an unknown member of the delta', (word) => ({ delta: { x_new: { deep: [[word]] } } })],
    ['an unknown member of the choice', (word) => ({ delta: {}, x_new: word })],
    ['the names of members', (word) => ({ delta: { [word]: 1 } })],
    ['logprobs alone', (token) => ({ delta: {}, logprobs: { content: [{ token, logprob: 0, top_logprobs: [] }] } })],
    ['only token ids', () => ({ delta: {}, token_ids: [5] })],
  ];
  it.each(carriers)('is counted, with at least one token per chunk: %s', async (_, carry) => {
    const caller = await gateway.caller();
    const chunks = Array.from({ length: 200 }, () => carry(' word'));
    const text = await (await ask(caller, streams(chunks, finish()), { stream: true, max_tokens: 1_000 })).text();
    expect(read(text).chunks.length).toBeGreaterThanOrEqual(200);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event!.completionTokens).toBeGreaterThanOrEqual(200);
    expect(event!.estimated).toBe(true);
  });

  it.each(carriers)('never exceeds the hold: %s', async (_, carry) => {
    const caller = await gateway.caller();
    const chunks = Array.from({ length: 200 }, () => carry(' word'));
    const text = await (await ask(caller, streams(chunks, null, true), { stream: true })).text();
    const { chunks: got } = read(text);
    expect(got.length).toBeLessThanOrEqual(CAP + 1);
    expect(got.at(-1)).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event!.completionTokens).toBeLessThanOrEqual(CAP);
    expect(event!.overrunNanos).toBe('0');
  });

  it('in a choice that was not requested is not passed on', async () => {
    const caller = await gateway.caller();
    const play = streams([{ delta: { content: ' a' } }, { index: 1, delta: { content: ' secret' } }], finish());
    const text = await (await ask(caller, play, { stream: true })).text();
    expect(text).not.toContain('secret');
    expect(text).toMatch(/"code":"upstream_error"\}\}\n\ndata: \[DONE\]\n\n$/);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'upstream_error', completionTokens: 1 });
  });
});

describe('with a cap of one token, an answer with other data than text', () => {
  const BIG = ' word'.repeat(20_000);
  const WORD = 'w'.repeat(62);
  const short = 'x'.repeat(110);
  const MAX_BYTES = 32 * 1024;
  const list = (n: number, one: unknown) => Array.from({ length: n }, () => one);
  const carriers: [string, number, object, boolean?][] = [
    ...[null, true, '', [], {}, 1].map((value): [string, number, object] => [
      `names of members with ${JSON.stringify(value)}`,
      20,
      { delta: { content: '', [BIG]: value } },
    ]),
    ['strings in logprobs', 20, { delta: {}, logprobs: { x: list(900, short) } }],
    [
      'alternatives to one token',
      20,
      { delta: {}, logprobs: { content: [{ token: 'a', top_logprobs: list(900, { token: short }) }] } },
    ],
    ['numbers in logprobs', 20, { delta: {}, logprobs: { bytes: list(20_000, 97) } }],
    ['a text as stop reason', 2_000, { delta: {}, stop_reason: WORD }],
    ['numbers as stop reason', 20, { delta: {}, stop_reason: list(20_000, 97) }],
    ['texts as native finish reason', 20, { delta: {}, native_finish_reason: list(2_000, WORD) }],
    ['texts as filter results', 20, { delta: {}, content_filter_results: list(2_000, WORD) }],
    ['names in filter results', 20, { delta: {}, content_filter_results: { [BIG]: null } }],
    ['types of calls', 20, { delta: { tool_calls: list(2_000, { type: 'function' }) } }],
    ['ids of calls', 20, { delta: { tool_calls: list(2_000, { id: WORD }) } }],
    ['signatures', 20, { delta: { thinking_blocks: [{ type: 'thinking', signature: 'U2ln'.repeat(2_000) }] } }],
  ];
  it.each(carriers)('is limited in size, streamed: %s', async (_, n, chunk) => {
    const caller = await gateway.caller();
    const play = streams(list(n, chunk) as object[], finish());
    const text = await (await ask(caller, play, { stream: true, max_tokens: 1 })).text();
    expect(text.length).toBeLessThan(MAX_BYTES);
  });

  it.each(carriers.filter(([, n]) => n === 20))('is limited in size, plain: %s', async (_, _n, chunk) => {
    const { delta, ...more } = chunk as { delta: object };
    const caller = await gateway.caller();
    const choices = [
      { index: 0, message: { role: 'assistant', content: 'a', ...delta }, finish_reason: 'stop', ...more },
    ];
    const text = await (await ask(caller, answers({ choices }), { max_tokens: 1 })).text();
    expect(text.length).toBeLessThan(MAX_BYTES);
  });

  it('is limited in size with a number of many digits', async () => {
    const caller = await gateway.caller();
    const seed = `0.${'1'.repeat(9_000)}`;
    const json = `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop","seed":${seed}}]}`;
    const play: Play = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(json);
    const answer = await ask(caller, play, { max_tokens: 1 });
    expect([answer.status, (await answer.text()).length < 1_000]).toEqual([200, true]);
  });
});

describe('a plain answer with more tokens than requested', () => {
  const choice = (message: object, more: object = {}) => ({ index: 0, message, finish_reason: 'stop', ...more });

  it('is cut at its cap, counted by the model’s tokenizer', async () => {
    const caller = await gateway.caller();
    const message = { role: 'assistant', content: LONG, reasoning: 'I think.' };
    const answer = await ask(caller, answers({ choices: [choice(message)], ...usage(13, count(LONG)) }));
    const { choices, usage: shown } = (await answer.json()) as {
      choices: { message: { content: string; reasoning: string }; finish_reason: string }[];
      usage: { completion_tokens: number };
    };
    const { content, reasoning } = choices[0]!.message;
    expect([LONG.startsWith(content), count(content), reasoning]).toEqual([true, CAP, '']);
    expect([choices[0]!.finish_reason, shown.completion_tokens]).toEqual(['length', CAP]);
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ completionTokens: CAP, overrunNanos: '0' });
  });

  it('is cut as a legacy completion too', async () => {
    const caller = await gateway.caller();
    const play = answers({ choices: [{ index: 0, text: LONG, finish_reason: 'stop', logprobs: null }] });
    const fields = { prompt: 'x', messages: undefined };
    const answer = await ask(caller, play, fields, '/v1/completions');
    const { choices } = (await answer.json()) as { choices: { text: string; finish_reason: string }[] };
    expect([count(choices[0]!.text), choices[0]!.finish_reason]).toEqual([CAP, 'length']);
  });

  const text = { role: 'assistant', content: LONG };
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: LONG } };
  it.each<[string, object[], object?]>([
    ['a tool call', [choice({ role: 'assistant', content: null, tool_calls: [call] })]],
    ['a function call', [choice({ role: 'assistant', function_call: call.function })]],
    ['a document in JSON', [choice(text)], { response_format: { type: 'json_object' } }],
    ['log probabilities', [choice(text, { logprobs: { content: [] } })]],
    ['sound', [choice({ role: 'assistant', audio: { id: 'a', data: LONG, transcript: LONG } })]],
    ['more choices', [choice({ content: 'a' }), choice({ content: 'b' }, { index: 1 })]],
  ])('that cannot be cut is refused and not charged: %s', async (_, choices, fields = {}) => {
    const caller = await gateway.caller();
    const answer = await ask(caller, answers({ choices, ...usage(13, 50) }), fields);
    expect(answer.status).toBe(502);
    expect(await answer.text()).toContain('"code":"upstream_error"');
    await expectSettledAt(gateway, caller, 0n);
  });

  it.each([
    ['within the cap', CAP, 200, CAP],
    ['impossible', 20, 502, null],
    ['beyond the cap', CAP + 1, 502, null],
  ])('that cannot be cut is sent only with a count within the cap: %s', async (_, reported, status, charged) => {
    const caller = await gateway.caller();
    const document = JSON.stringify({ text: ' word'.repeat(CAP + 20) });
    const play = answers({ choices: [choice({ role: 'assistant', content: document })], ...usage(13, reported) });
    const answer = await ask(caller, play, { response_format: { type: 'json_object' } });
    expect(answer.status).toBe(status);
    if (charged === null) return expectSettledAt(gateway, caller, 0n);
    expect(await answer.text()).toContain(JSON.stringify(document));
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ completionTokens: charged, estimated: false, overrunNanos: '0' });
  });

  it('with more vectors than inputs is refused and not charged', async () => {
    const caller = await gateway.caller();
    const vector = { object: 'embedding', embedding: [0.5] };
    const vectors = (n: number) =>
      answers({ data: Array.from({ length: n }, (_, index) => ({ ...vector, index })), ...usage(2, 0) });
    const fields = { model: 'vectors', input: ['a', 'b'], messages: undefined, max_tokens: undefined };
    expect((await ask(caller, vectors(3), fields, '/v1/embeddings')).status).toBe(502);
    await expectSettledAt(gateway, caller, 0n);
    expect((await ask(caller, vectors(2), fields, '/v1/embeddings')).status).toBe(200);
    await expectSettledAt(gateway, caller, 2_000n);
  });

  it('has the encoding of vectors that the client asked for, if the backend does not know it', async () => {
    const caller = await gateway.caller();
    const play = answers({ data: [{ object: 'embedding', index: 0, embedding: [0.5, -1, 3] }], ...usage(1, 0) });
    const fields = { model: 'vectors', input: 'a', messages: undefined, max_tokens: undefined };
    const ofFormat = async (encoding_format: string | undefined) => {
      const answer = await ask(caller, play, { ...fields, encoding_format }, '/v1/embeddings');
      return ((await answer.json()) as { data: object[] }).data;
    };
    const base64 = Buffer.from(Float32Array.of(0.5, -1, 3).buffer).toString('base64');
    expect(await ofFormat('base64')).toEqual([{ object: 'embedding', index: 0, embedding: base64 }]);
    expect(await ofFormat('float')).toEqual([{ object: 'embedding', index: 0, embedding: [0.5, -1, 3] }]);
    expect(await ofFormat(undefined)).toEqual([{ object: 'embedding', index: 0, embedding: [0.5, -1, 3] }]);
  });

  it.each([[{}], [{ message: null }], [{ text: 'legacy' }]])(
    'of a chat without a message is refused and not charged: %j',
    async (fields) => {
      const caller = await gateway.caller();
      const play = answers({ choices: [{ index: 0, finish_reason: 'stop', ...fields }], ...usage(13, 2) });
      expect((await ask(caller, play)).status).toBe(502);
      await expectSettledAt(gateway, caller, 0n);
    },
  );

  it('is rewritten if a member is duplicated, because only one of them was counted', async () => {
    const caller = await gateway.caller();
    const message = `{"content":${JSON.stringify(LONG)},"content":"short"}`;
    const twice = `{"choices":[{"index":0,"message":${message},"finish_reason":"stop"}]}`;
    const play: Play = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(twice);
    const answer = await (await ask(caller, play)).text();
    expect(answer).toContain('"content":"short"');
    expect(answer).not.toContain('word');
  });
});
