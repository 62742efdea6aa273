import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { useOwnBackend } from '../gateway/backends/own-backend';
import { type Caller, expectSettledAt, useGateway } from '../gateway/use-gateway';

/** Bodies in the form of an engine, after its public sources: `source` names them. */
interface Dialect {
  source: string;
  plain: { usage: { prompt_tokens: number; completion_tokens: number } };
  /** A text, and a call of a tool, as the chunks of a stream. */
  stream: object[];
  tool: object[];
  refusal: { status: number; body: object; says: string };
  /** An event in the middle of a stream. */
  broken: object;
}

const NAMES = ['vllm', 'sglang', 'ollama', 'tgi'] as const;
const bodies = Object.fromEntries(
  NAMES.map((name) => [name, JSON.parse(readFileSync(join(__dirname, 'dialects', `${name}.json`), 'utf8')) as Dialect]),
);
const TEXT = 'Paris is the capital of France.';
const NANOS = { input: 1_000n, output: 2_000n };
/** The members of OpenAI's own answers. */
const ENVELOPE = ['choices', 'created', 'id', 'model', 'object', 'usage'];
const messages = [{ role: 'user', content: 'What is the capital of France?' }];
const tools = [{ type: 'function', function: { name: 'find', parameters: { type: 'object' } } }];

let answer: (response: ServerResponse, requested: { stream?: boolean }) => void;
const yaml = useOwnBackend(
  'own',
  (request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => (text += part));
    request.on('end', () => answer(response, JSON.parse(text) as { stream?: boolean }));
  },
  (url) =>
    NAMES.map(
      (name) => `
  - { id: on-${name}, kind: chat, contextTokens: 8192, price: { input: '1', output: '2' },
      backends: [{ url: '${url}', dialect: ${name}, model: inner }] }`,
    ).join(''),
);
const gateway = useGateway({ yaml });

async function ask(caller: Caller, name: string, more: object = {}) {
  const body = { model: `on-${name}`, messages, ...more };
  const response = await gateway.post('/v1/chat/completions', body, caller);
  return { status: response.status, text: await response.text() };
}

const framesOf = (text: string) =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)));

/** TGI's events had no space behind the colon for a long time. */
const sending = (name: string, chunks: readonly object[], end = 'data: [DONE]\n\n') => {
  const prefix = name === 'tgi' ? 'data:' : 'data: ';
  return (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(chunks.map((chunk) => `${prefix}${JSON.stringify(chunk)}\n\n`).join('') + end);
  };
};

describe.each(NAMES)('an engine that answers like %s', (name) => {
  const dialect = bodies[name]!;
  const { prompt_tokens: prompt, completion_tokens: output } = dialect.plain.usage;
  const cost = BigInt(prompt) * NANOS.input + BigInt(output) * NANOS.output;

  it('gives the same text and usage whole and streamed, charged as it reported, without its own fields', async () => {
    const caller = await gateway.caller();
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(dialect.plain));
    };
    const plain = await ask(caller, name);
    expect(plain.status).toBe(200);
    const whole = JSON.parse(plain.text);
    expect(Object.keys(whole).sort()).toEqual(ENVELOPE);
    const [choice] = whole.choices;
    expect([choice.message.content, choice.finish_reason]).toEqual([TEXT, 'stop']);
    answer = sending(name, dialect.stream);
    const { text } = await ask(caller, name, { stream: true });
    const frames = framesOf(text);
    for (const frame of frames) expect(ENVELOPE).toEqual(expect.arrayContaining(Object.keys(frame)));
    expect(frames.map((frame) => frame.choices[0]?.delta.content ?? '').join('')).toBe(TEXT);
    expect(frames.at(-1).choices[0].finish_reason).toBe('stop');
    expect(frames.at(-1).usage).toEqual(whole.usage);
    expect(whole.usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: output });
    for (const given of [plain.text, text]) expect(given).not.toMatch(/inner|fp_ollama|sha-|weight_version|"id":""/);
    const events = await gateway.events(caller.tenantId, 2);
    expect(events.map(({ estimated }) => estimated)).toEqual([false, false]);
    await expectSettledAt(gateway, caller, 2n * cost);
  });

  it('streams the call of a tool, whose parts are the whole call', async () => {
    const caller = await gateway.caller();
    answer = sending(name, dialect.tool);
    const frames = framesOf((await ask(caller, name, { stream: true, tools })).text);
    const calls = frames.flatMap((frame) => frame.choices[0]?.delta.tool_calls ?? []);
    expect(calls.map(({ function: { name: of } }) => of ?? '').join('')).toBe('find');
    expect(JSON.parse(calls.map((call) => call.function.arguments).join(''))).toEqual({ city: 'Paris' });
    const { usage } = dialect.tool.at(-1) as { usage: Dialect['plain']['usage'] };
    const { prompt_tokens: given, completion_tokens: calling } = usage;
    expect(frames.at(-1).usage).toMatchObject({ prompt_tokens: given, completion_tokens: calling });
  });

  it('refuses a request: the client learns why as 400, and nothing of the engine', async () => {
    const { status, body, says } = dialect.refusal;
    answer = (response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const caller = await gateway.caller();
    for (const stream of [false, true]) {
      const refused = await ask(caller, name, { stream });
      expect(refused.status).toBe(400);
      expect(JSON.parse(refused.text).error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_value' });
      expect(JSON.parse(refused.text).error.message).toContain(says);
      expect(refused.text).not.toMatch(/inner|registry\.ollama/);
    }
    expect(await gateway.snapshot(caller.tenantId)).toMatchObject({ pendingNanos: 0n, settledNanos: 0n });
  });

  it('breaks off a stream by its own event: 502 before output, then an error event without its words', async () => {
    const caller = await gateway.caller();
    answer = sending(name, [dialect.broken]);
    const before = await ask(caller, name, { stream: true });
    expect([before.status, JSON.parse(before.text).error.type]).toEqual([502, 'upstream_error']);
    answer = sending(name, [...dialect.stream.slice(0, 3), dialect.broken], '');
    const { status, text } = await ask(caller, name, { stream: true });
    expect(status).toBe(200);
    expect(framesOf(text).at(-1)).toMatchObject({ error: { type: 'upstream_error' } });
    expect(text).not.toMatch(/EngineCore|sampling|CUDA|CANCELLED/);
    const [charged] = await gateway.events(caller.tenantId, 1);
    expect(charged).toMatchObject({ outcome: 'upstream_error', estimated: true });
  });
});
