import { metrics } from '@tollgate/runtime';
import { answers, finish, streams, usage, usePlayedBackend } from '../backends/played-backend';
import { type Caller, expectSettledAt, useGateway } from '../use-gateway';

const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: seen, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, maxTokensPerImage: 1000,
      price: { input: '1', output: '2' }, backends: [{ url: '${url}' }] }
  - { id: hidden, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, usageBand: { min: 0.5, max: 20 },
      price: { input: '1', output: '2' }, backends: [{ url: '${url}' }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
/** "user" and ten words, 3 for the message and 3 for the prompt. */
const messages = [{ role: 'user', content: ' word'.repeat(100) }];
const PROMPT = 107;
const WORDS = 100;
const OWN = { promptTokens: PROMPT, completionTokens: WORDS };

async function ask(caller: Caller, stream: boolean, reported: object, fields: object = {}) {
  backend.state.play = stream
    ? streams(
        Array.from({ length: WORDS }, () => ({ delta: { content: ' word' } })),
        finish(reported),
      )
    : answers({
        choices: [{ index: 0, message: { role: 'assistant', content: ' word'.repeat(WORDS) }, finish_reason: 'stop' }],
        ...reported,
      });
  const answer = await gateway.post('/v1/chat/completions', { model: 'own', messages, stream, ...fields }, caller);
  return answer.text();
}

async function disbelieved(what: string): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_usage_disbelieved_total')!.get();
  return values.filter(({ labels }) => labels['what'] === what).reduce((sum, { value }) => sum + value, 0);
}

describe.each([true, false])('usage that a backend reports (stream: %s)', (stream) => {
  it.each([
    ['no completion', usage(PROMPT, 0), 'completion'],
    ['too little', usage(PROMPT, 20), 'completion'],
    ['too much', usage(PROMPT, 300), 'completion'],
    ['no prompt', usage(0, WORDS), 'prompt'],
    ['a prompt that is too short', usage(30, WORDS), 'prompt'],
    ['a prompt that is too long', usage(900, WORDS), 'prompt'],
    ['a prompt with more tokens than bytes', usage(8_000, WORDS), 'prompt'],
    ['fractions', usage(PROMPT + 0.5, WORDS), 'form'],
    ['a negative count', usage(PROMPT, -5), 'form'],
    ['words', usage(PROMPT, '100'), 'form'],
    ['a count too large for its column', usage(PROMPT, 1e12), 'form'],
    ['a wrong sum', { usage: { prompt_tokens: PROMPT, completion_tokens: WORDS, total_tokens: 5 } }, 'form'],
    ['no object', { usage: 7 }, 'form'],
  ])('is not believed if it cannot be true: %s', async (_, reported, what) => {
    const caller = await gateway.caller();
    const before = await disbelieved(what);
    const text = await ask(caller, stream, reported);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ ...OWN, cachedTokens: 0, estimated: true, overrunNanos: '0', outcome: 'complete' });
    expect(text).toContain(`"completion_tokens":${WORDS},"total_tokens":${PROMPT + WORDS}}`);
    expect(await disbelieved(what)).toBe(before + 1);
    await expectSettledAt(gateway, caller, BigInt(PROMPT * 1_000 + WORDS * 2_000));
  });

  it.each([
    ['the same', PROMPT, WORDS],
    ['another tokenizer’s', 150, 160],
    ['a tokenizer with fewer tokens', 70, 60],
    ['at the limit of the band', 2 * PROMPT, 2 * WORDS],
  ])('is believed if it can be true: %s', async (_, prompt, completion) => {
    const caller = await gateway.caller();
    await ask(caller, stream, usage(prompt, completion));
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ promptTokens: prompt, completionTokens: completion, estimated: false });
  });

  it('is not believed below the band of a short answer', async () => {
    const caller = await gateway.caller();
    const words = Array.from({ length: 33 }, () => ({ delta: { content: ' word' } }));
    const message = { role: 'assistant', content: ' word'.repeat(33) };
    backend.state.play = stream
      ? streams(words, finish(usage(PROMPT, 1)))
      : answers({ choices: [{ index: 0, message, finish_reason: 'stop' }], ...usage(PROMPT, 1) });
    await (await gateway.post('/v1/chat/completions', { model: 'own', messages, stream }, caller)).text();
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ completionTokens: 33, estimated: true });
  });

  it('reaches the client with all its details that are counts, if its counts are believed', async () => {
    const caller = await gateway.caller();
    const details = {
      prompt_tokens_details: { cached_tokens: 2, audio_tokens: 0, text: 'secret', nested: { a: 1 } },
      completion_tokens_details: { reasoning_tokens: 3, accepted_prediction_tokens: 10 ** 6, 'a b': 1, half: 0.5 },
    };
    const seen = await ask(caller, stream, { usage: { ...usage(PROMPT, WORDS).usage, ...details } });
    const shown = JSON.parse(/"usage":(\{"prompt_tokens".*?\}\})\}/.exec(seen)![1]!);
    expect(shown).toEqual({
      ...usage(PROMPT, WORDS).usage,
      prompt_tokens_details: { cached_tokens: 2, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 3, accepted_prediction_tokens: WORDS },
    });
    const disbelieved = await ask(caller, stream, { usage: { ...usage(PROMPT, 10 ** 6).usage, ...details } });
    expect(disbelieved).toContain('"prompt_tokens_details"');
    expect(disbelieved).not.toContain('completion_tokens_details');
    const [first, second] = await gateway.events(caller.tenantId, 2);
    expect([first!.reasoningTokens, second!.reasoningTokens]).toEqual([3, undefined]);
  });

  it('never counts more cached tokens than tokens of the prompt', async () => {
    const caller = await gateway.caller();
    const details = { prompt_tokens_details: { cached_tokens: 5_000 } };
    await ask(caller, stream, { usage: { ...usage(PROMPT, WORDS).usage, ...details } });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ promptTokens: PROMPT, cachedTokens: PROMPT });
  });

  it('is believed with an image at any count from zero to its maximum', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const seen = [{ role: 'user', content: [{ type: 'text', text: messages[0]!.content }, image] }];
    for (const [prompt, estimated] of [
      [PROMPT, false],
      [PROMPT + 1_000, false],
      [PROMPT + 3_000, true],
    ] as const) {
      const caller = await gateway.caller();
      await ask(caller, stream, usage(prompt, WORDS), { model: 'seen', messages: seen });
      expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ estimated });
    }
  });

  it('is believed when a template writes the result of a tool as a JSON string', async () => {
    const lines = [...messages, { role: 'tool', tool_call_id: 'call_1', content: '\n'.repeat(5_000) }];
    for (const [prompt, estimated] of [
      [PROMPT + 5_000, false],
      [PROMPT + 5_000 * 6, true],
    ] as const) {
      const caller = await gateway.caller();
      await ask(caller, stream, usage(prompt, WORDS), { messages: lines });
      const [event] = await gateway.events(caller.tenantId, 1);
      expect(event).toMatchObject({ estimated, overrunNanos: '0', ...(estimated ? {} : { promptTokens: prompt }) });
    }
  });

  it('is compared with the model’s own band, because a reasoning model generates more than it delivers', async () => {
    const caller = await gateway.caller();
    await ask(caller, stream, usage(PROMPT, 15 * WORDS), { model: 'hidden' });
    expect((await gateway.events(caller.tenantId, 1))[0]).toMatchObject({ completionTokens: 1_500, estimated: false });
  });

  it.each([
    [5, 105, true],
    [100, 2_100, true],
    [5, 300, false],
  ])('is charged for the syntax around %i tool calls: %i tokens', async (calls, reported, isBelieved) => {
    const caller = await gateway.caller();
    // Hermes: two tags, and an object with a name and arguments.
    const called = { name: 'get_weather', arguments: '{"city": "Paris"}' };
    const all = Array.from({ length: calls }, (_, i) => ({
      id: `c${i}`,
      type: 'function',
      index: i,
      function: called,
    }));
    const end = finish(usage(PROMPT, reported), { finish_reason: 'tool_calls' });
    backend.state.play = stream
      ? streams(
          all.flatMap(({ index, ...call }) => [
            { delta: { tool_calls: [{ index, ...call, function: { name: called.name, arguments: '' } }] } },
            { delta: { tool_calls: [{ index, function: { arguments: called.arguments } }] } },
          ]),
          end,
        )
      : answers({
          choices: [{ index: 0, message: { role: 'assistant', tool_calls: all }, finish_reason: 'tool_calls' }],
          ...usage(PROMPT, reported),
        });
    await (await gateway.post('/v1/chat/completions', { model: 'own', messages, stream }, caller)).text();
    const [event] = await gateway.events(caller.tenantId, 1);
    // Ours: two words and six signs.
    const completionTokens = isBelieved ? reported : 8 * calls;
    expect(event).toMatchObject({ completionTokens, estimated: !isBelieved, overrunNanos: '0' });
  });

  it('is charged for unseen output, if it went to its limit or the backend names it as reasoning', async () => {
    const reasoned = { ...usage(PROMPT, 600).usage, completion_tokens_details: { reasoning_tokens: 599 } };
    for (const [reported, finish_reason, n, estimated] of [
      [usage(PROMPT, 600), 'length', 1, false],
      [{ usage: reasoned }, 'stop', 1, false],
      [usage(PROMPT, 600), 'stop', 1, true],
      // Only one of two choices has ended.
      [usage(PROMPT, 600), 'length', 2, true],
    ] as const) {
      const caller = await gateway.caller();
      backend.state.play = stream
        ? streams([{ delta: { content: 'x' } }], finish(reported, { finish_reason }))
        : answers({
            choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason }],
            ...reported,
          });
      const body = { model: 'own', messages, stream, n, max_tokens: 600 };
      await (await gateway.post('/v1/chat/completions', body, caller)).text();
      const completionTokens = estimated ? 1 : 600;
      const [event] = await gateway.events(caller.tenantId, 1);
      expect(event).toMatchObject({ promptTokens: PROMPT, completionTokens, estimated, overrunNanos: '0' });
      await expectSettledAt(gateway, caller, BigInt(PROMPT * 1_000 + completionTokens * 2_000));
    }
  });

  it('is charged for reasoning of which it delivers a summary', async () => {
    const caller = await gateway.caller();
    const reasoned = { ...usage(PROMPT, 600).usage, completion_tokens_details: { reasoning_tokens: 590 } };
    const summary = ' word'.repeat(WORDS);
    backend.state.play = stream
      ? streams([{ delta: { reasoning: summary } }, { delta: { content: 'x' } }], finish({ usage: reasoned }))
      : answers({
          choices: [
            { index: 0, message: { role: 'assistant', reasoning: summary, content: 'x' }, finish_reason: 'stop' },
          ],
          usage: reasoned,
        });
    const body = { model: 'own', messages, stream, max_tokens: 600 };
    await (await gateway.post('/v1/chat/completions', body, caller)).text();
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ completionTokens: 600, reasoningTokens: 590, estimated: false, overrunNanos: '0' });
  });
});
