import { eventually } from '@tollgate/testing';
import { CAP, count, LONG, useCappedGateway } from './capped-gateway';
import { largeAnswersTests } from './large-answers.part';
import { plainCapTests } from './plain-cap.part';
import { answers, finish, type Play, streams, usage } from '../backends/played-backend';
import type { Caller } from '../use-gateway';

const capped = useCappedGateway();
const { backend, gateway, ask } = capped;

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

  const details = (text: string) => [{ type: 'reasoning.text', text, format: 'anthropic-claude-v1', index: 0 }];
  const thinking_blocks = (thinking: string) => [{ type: 'thinking', thinking }];
  const SEVERAL_NAMES: [string, (word: string) => object][] = [
    ['vLLM', (word) => ({ reasoning: word, reasoning_content: word })],
    ['OpenRouter', (word) => ({ reasoning: word, reasoning_details: details(word) })],
    [
      'LiteLLM',
      (word) => ({
        reasoning_content: word,
        thinking_blocks: thinking_blocks(word),
        provider_specific_fields: { reasoning_content: word },
      }),
    ],
  ];

  it.each(SEVERAL_NAMES)(
    'is passed on completely if each chunk has its reasoning under the names of %s',
    async (_, of) => {
      const caller = await gateway.caller();
      const several = { delta: of(' word') };
      const words = Array.from({ length: CAP - 1 }, () => several);
      const play = streams([...words, { delta: { content: ' end' } }], finish(usage(13, CAP)));
      const { content, chunks } = read(await (await ask(caller, play, { stream: true })).text());
      expect([content, chunks.filter(({ choices }) => choices[0]?.delta).length]).toEqual([' end', CAP + 1]);
      expect(chunks[0]!.choices).toMatchObject([several]);
      expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ completionTokens: CAP, estimated: false });
    },
  );

  it.each(SEVERAL_NAMES)(
    'is charged once for reasoning under the names of %s, if its backend breaks off',
    async (_, of) => {
      const caller = await gateway.caller();
      const words = Array.from({ length: 10 }, () => ({ delta: of(' word') }));
      await (await ask(caller, streams(words, null), { stream: true })).text();
      const [event] = await gateway.events(caller.tenantId, 1);
      expect(event).toMatchObject({ outcome: 'upstream_error', completionTokens: 10 });
    },
  );

  it('is charged for all reasoning under two names, if the texts differ', async () => {
    const caller = await gateway.caller();
    const words = Array.from({ length: 10 }, (_, n) => ({
      delta: { reasoning: ' word', reasoning_details: details(n % 2 === 0 ? ' other' : ' word') },
    }));
    await (await ask(caller, streams(words, null), { stream: true })).text();
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'upstream_error', completionTokens: 15 });
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

describe('a plain answer with more tokens than requested', () => plainCapTests(capped));
describe('a large answer', () => largeAnswersTests(capped));
