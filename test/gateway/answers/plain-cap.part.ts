import { CAP, type CappedGateway, count, LONG } from './capped-gateway';
import { answers, type Play, usage } from '../backends/played-backend';
import { expectSettledAt } from '../use-gateway';

/** Answers in one piece with more tokens than requested. */
export function plainCapTests({ gateway, ask }: CappedGateway): void {
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

  it('is neither cut nor charged twice for reasoning under several names, and a longer one is cut under all', async () => {
    const caller = await gateway.caller();
    const of = (reasoning: string) => ({
      role: 'assistant',
      reasoning,
      reasoning_content: reasoning,
      reasoning_details: [reasoning.slice(0, 60), reasoning.slice(60)].map((text) => ({
        type: 'reasoning.text',
        text,
      })),
      provider_specific_fields: { thinking_blocks: [{ type: 'thinking', thinking: reasoning }] },
      content: ' end',
    });
    const fits = of(' word'.repeat(CAP - 1));
    const whole = await ask(caller, answers({ choices: [choice(fits)], ...usage(13, CAP) }));
    expect(await whole.json()).toMatchObject({ choices: [choice(fits)], usage: { completion_tokens: CAP } });
    const cut = await ask(caller, answers({ choices: [choice(of(LONG))], ...usage(13, count(LONG)) }));
    const { choices } = (await cut.json()) as { choices: { message: { reasoning: string } }[] };
    const { message } = choices[0]!;
    expect([count(message.reasoning), LONG.startsWith(message.reasoning)]).toEqual([CAP, true]);
    expect(message).toEqual({ ...of(message.reasoning), content: '' });
    const events = await gateway.events(caller.tenantId, 2);
    expect(events.map(({ completionTokens }) => completionTokens)).toEqual([CAP, CAP]);
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

  it.each([
    ['fewer vectors than inputs', [{ embedding: [0.5] }]],
    ['an item without a vector', [{ embedding: [0.5] }, {}]],
    ['a vector without numbers', [{ embedding: [0.5] }, { embedding: [] }]],
    ['null for a vector', [{ embedding: null }, { embedding: [0.5] }]],
  ])('with %s is refused and not charged', async (_, data) => {
    const caller = await gateway.caller();
    const fields = { model: 'vectors', input: ['a', 'b'], messages: undefined, max_tokens: undefined };
    for (const encoding_format of ['float', 'base64']) {
      const play = answers({ data, ...usage(2, 0) });
      expect((await ask(caller, play, { ...fields, encoding_format }, '/v1/embeddings')).status).toBe(502);
    }
    await expectSettledAt(gateway, caller, 0n);
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
}
