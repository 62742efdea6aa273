import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type OpenAI from 'openai';
import { readEvents, useSimulator } from '../use-simulator.fixture';

type Request = OpenAI.ChatCompletionCreateParamsNonStreaming;
type Chunk = OpenAI.ChatCompletionChunk;

const messages: Request['messages'] = [
  { role: 'system', content: 'You are brief.' },
  { role: 'user', content: 'Where does the river go, Grüße?' },
];
const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'get_current_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { enum: ['c', 'f'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    },
  },
};

describe('chat completions', () => {
  const sim = useSimulator({ models: { cached: { cachedTokens: 5 }, wordy: { answerTokens: 500 } } });
  const ask = (request: Partial<Request> & Record<string, unknown> = {}) =>
    sim.openai.chat.completions.create({ model: 'm', messages, ...request });
  const stream = async (request: Partial<Request> & Record<string, unknown> = {}): Promise<Chunk[]> => {
    const chunks: Chunk[] = [];
    for await (const chunk of await sim.openai.chat.completions.create({
      model: 'm',
      messages,
      ...request,
      stream: true,
    }))
      chunks.push(chunk);
    return chunks;
  };
  const contentOf = (chunks: Chunk[], index = 0) =>
    chunks.map((chunk) => chunk.choices.find((choice) => choice.index === index)?.delta.content ?? '').join('');

  it('answer a complete text with the usage that the tokenizer counts', async () => {
    const { choices, usage, object } = await ask();
    expect(object).toBe('chat.completion');
    expect(choices).toMatchObject([
      { index: 0, finish_reason: 'stop', logprobs: null, message: { role: 'assistant' } },
    ]);
    expect(usage!.completion_tokens).toBe(60);
    expect(countTokens(choices[0]!.message.content!)).toBe(60);
    const contents = messages.reduce((sum, message) => sum + countTokens(message.content as string) + 4, 3);
    expect(usage!.prompt_tokens).toBe(contents);
    expect(usage!.total_tokens).toBe(contents + 60);
    expect(usage!.prompt_tokens_details).toBeUndefined();
  });

  it('stream the same text, one token per chunk, then the finish reason, then usage if requested', async () => {
    const whole = await ask();
    const chunks = await stream({ stream_options: { include_usage: true } });
    expect(contentOf(chunks)).toBe(whole.choices[0]!.message.content);
    expect(chunks[0]!.choices[0]!.delta).toMatchObject({ role: 'assistant', content: '' });
    const tokens = chunks.slice(1, -2);
    expect(tokens).toHaveLength(60);
    expect(tokens.every((chunk) => countTokens(chunk.choices[0]!.delta.content!) === 1 && chunk.usage === null)).toBe(
      true,
    );
    expect(chunks.at(-2)!.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
    const plain = await stream();
    expect(plain).toHaveLength(62);
    expect(plain.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  it('end every stream with [DONE]', async () => {
    const response = await sim.post('/chat/completions', { model: 'm', messages, stream: true });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect((await readEvents(response)).events.at(-1)).toBe('[DONE]');
  });

  it('depend only on model, messages, seed and choice', async () => {
    const text = async (request: object) =>
      (await ask(request as Partial<Request>)).choices.map((choice) => choice.message.content);
    const [first] = await text({});
    expect(await text({ temperature: 0.3, user: 'u', made_up: true })).toEqual([first]);
    const others = [
      await text({ seed: 2 }),
      await text({ model: 'm2' }),
      await text({ messages: messages.slice(1) }),
      (await text({ n: 2 })).slice(1),
    ];
    expect(new Set([first, ...others.flat()]).size).toBe(5);
    expect((await text({ n: 2 }))[0]).toBe(first);
  });

  it('stop at max_tokens with the reason length, and never lengthen the text', async () => {
    const whole = await ask();
    for (const field of ['max_tokens', 'max_completion_tokens']) {
      const cut = await ask({ [field]: 7 });
      expect(cut.choices[0]!.finish_reason).toBe('length');
      expect(cut.usage!.completion_tokens).toBe(7);
      expect(countTokens(cut.choices[0]!.message.content!)).toBe(7);
      expect(whole.choices[0]!.message.content!.startsWith(cut.choices[0]!.message.content!)).toBe(true);
    }
    expect((await ask({ max_tokens: 60 })).choices[0]!.finish_reason).toBe('stop');
    expect((await ask({ model: 'wordy' })).usage!.completion_tokens).toBe(500);
  });

  it('stop before a stop text, also in the middle of a token, and count the remaining text', async () => {
    const text = (await ask()).choices[0]!.message.content!;
    const at = text.indexOf(' ', 40) + 3;
    const stop = text.slice(at, at + 6);
    const cut = await ask({ stop: ['never in it', stop] });
    expect(cut.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: text.slice(0, text.indexOf(stop)) },
    });
    expect(cut.usage!.completion_tokens).toBe(countTokens(cut.choices[0]!.message.content!));
    expect(contentOf(await stream({ stop }))).toBe(cut.choices[0]!.message.content);
    expect((await ask({ stop: text[0]! })).usage!.completion_tokens).toBe(0);
  });

  it('return n choices, streamed in turn, and count all of them', async () => {
    const whole = await ask({ n: 3, max_tokens: 20 });
    expect(whole.usage!.completion_tokens).toBe(60);
    const chunks = await stream({ n: 3, max_tokens: 20 });
    for (const { index, message } of whole.choices) expect(contentOf(chunks, index)).toBe(message.content);
    expect(chunks.slice(3, 6).map((chunk) => chunk.choices[0]!.index)).toEqual([0, 1, 2]);
  });

  it('call a tool with valid arguments, plain and streamed, until its result is in the messages', async () => {
    const whole = await ask({ tools: [WEATHER] });
    const { finish_reason, message } = whole.choices[0]!;
    expect(finish_reason).toBe('tool_calls');
    expect(message.content).toBeNull();
    const call = message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall;
    expect(call).toMatchObject({ type: 'function', function: { name: WEATHER.function.name } });
    expect(JSON.parse(call.function.arguments)).toEqual({
      city: expect.any(String),
      unit: expect.stringMatching(/^[cf]$/),
    });
    expect(whole.usage!.completion_tokens).toBe(countTokens(call.function.name) + countTokens(call.function.arguments));

    const chunks = await stream({ tools: [WEATHER] });
    const deltas = chunks
      .map((chunk) => chunk.choices[0]!.delta.tool_calls?.[0])
      .filter((delta) => delta !== undefined);
    expect(deltas[0]).toMatchObject({
      index: 0,
      id: expect.any(String),
      function: { name: WEATHER.function.name, arguments: '' },
    });
    expect(deltas.map((delta) => delta.function!.arguments).join('')).toBe(call.function.arguments);
    expect(deltas).toHaveLength(1 + countTokens(call.function.arguments));
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('tool_calls');

    const answered = await ask({
      tools: [WEATHER],
      messages: [...messages, message, { role: 'tool', tool_call_id: call.id, content: '21' }],
    });
    expect(answered.choices[0]!.finish_reason).toBe('stop');
  });

  it('obey tool_choice, and never exceed max_tokens', async () => {
    const other = { type: 'function' as const, function: { name: 'other', parameters: {} } };
    expect((await ask({ tools: [WEATHER], tool_choice: 'none' })).choices[0]!.finish_reason).toBe('stop');
    const named = await ask({
      tools: [WEATHER, other],
      tool_choice: { type: 'function', function: { name: 'other' } },
    });
    expect(named.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: 'other' } }]);
    await expect(
      ask({ tools: [other], tool_choice: { type: 'function', function: { name: 'none' } } }),
    ).rejects.toMatchObject({ status: 400, param: 'tool_choice' });
    for (const max_tokens of [1, 3, 5]) {
      const cut = await ask({ tools: [WEATHER], tool_choice: 'required', max_tokens });
      expect(cut.choices[0]!.finish_reason).toBe('length');
      expect(cut.usage!.completion_tokens).toBe(max_tokens);
    }
  });

  it('answer JSON for response_format, valid against its schema and counted exactly', async () => {
    const loose = await ask({ response_format: { type: 'json_object' } });
    expect(JSON.parse(loose.choices[0]!.message.content!)).toEqual(expect.any(Object));
    const schema = {
      type: 'object',
      properties: { city: { enum: ['Köln'] }, days: { type: 'integer' } },
      required: ['city', 'days'],
      additionalProperties: false,
    };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'trip', strict: true, schema } };
    const strict = await ask({ response_format });
    const content = strict.choices[0]!.message.content!;
    expect(JSON.parse(content)).toEqual({ city: 'Köln', days: expect.any(Number) });
    expect(strict.usage!.completion_tokens).toBe(countTokens(content));
    expect(contentOf(await stream({ response_format }))).toBe(content);
    await expect(
      ask({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'text' } } } }),
    ).rejects.toMatchObject({ status: 400, code: 'invalid_schema', param: 'response_format' });
  });

  it('have a bound over all choices, and each choice is the same however many there are', async () => {
    const schema = { type: 'array', items: { type: 'integer' }, minItems: 300, maxItems: 300 };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'many', schema } };
    const contents = async (n: number) =>
      (await ask({ response_format, n })).choices.map(({ message }) => message.content);
    const few = await contents(2);
    expect((await contents(20)).slice(0, 2)).toEqual(few);
    const parameters = { type: 'object', properties: { many: schema }, required: ['many'] };
    const tools = [{ type: 'function' as const, function: { name: 'f', parameters } }];
    const refused = { status: 400, code: 'invalid_schema', message: expect.stringContaining('more than 10000 values') };
    await expect(ask({ response_format, n: 40 })).rejects.toMatchObject(refused);
    await expect(ask({ tools, tool_choice: 'required', n: 40 })).rejects.toMatchObject(refused);
    const long = { simulator: { answerTokens: 1_000_000 } };
    await expect(ask({ n: 3, ...long })).rejects.toMatchObject({ status: 400, param: 'n' });
    expect((await ask({ n: 3, max_tokens: 2, ...long })).usage!.completion_tokens).toBe(6);
  });

  it('name the tool whose schema is wrong', async () => {
    const wrong = { type: 'function' as const, function: { name: 'wrong', parameters: { type: 'text' } } };
    const tool_choice = { type: 'function' as const, function: { name: 'wrong' } };
    await expect(ask({ tools: [WEATHER, wrong], tool_choice })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_schema',
      param: 'tools[1].function.parameters',
    });
  });

  it('include content parts, names and declared tools in the prompt count', async () => {
    const tokens = async (request: object) => (await ask(request as Partial<Request>)).usage!.prompt_tokens;
    const text = await tokens({ messages: [{ role: 'user', content: 'Look here' }] });
    const parts = [
      { type: 'text', text: 'Look here' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ];
    expect(await tokens({ messages: [{ role: 'user', content: parts }] })).toBe(text + 85);
    expect(await tokens({ messages: [{ role: 'user', name: 'ann', content: 'Look here' }] })).toBe(text + 2);
    expect(await tokens({ messages: [{ role: 'user', content: 'Look here' }], tools: [WEATHER] })).toBe(
      text + countTokens(JSON.stringify([WEATHER])),
    );
  });

  it('report cached tokens if configured, at most those of the prompt', async () => {
    expect((await ask({ model: 'cached' })).usage!.prompt_tokens_details!.cached_tokens).toBe(5);
    expect((await ask({ simulator: { cachedTokens: 1_000_000 } })).usage).toMatchObject({
      prompt_tokens: 23,
      prompt_tokens_details: { cached_tokens: 23 },
    });
  });

  it('have ids, model names and fingerprints of the simulator', async () => {
    const response = await sim.post('/chat/completions', { model: 'möd"el', messages });
    expect(await response.json()).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-sim/),
      model: 'simulated-möd"el',
      system_fingerprint: 'fp_simulator',
    });
    expect(response.headers.get('server')).toBe('simulator');
    expect(response.headers.get('x-request-id')).toMatch(/^req-sim/);
    expect(response.headers.get('openai-organization')).toBe('org-simulator');
    const ids = await Promise.all([ask(), ask()]);
    expect(ids[0].id).not.toBe(ids[1].id);
  });
});
