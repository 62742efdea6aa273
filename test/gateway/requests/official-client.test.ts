import { costNanos } from '@tollgate/contracts';
import { configYaml, useGateway } from '../use-gateway';

const gateway = useGateway({
  yaml: () =>
    configYaml({
      models: `  - { id: org/tuned/small, aliases: [gpt-4o-mini], kind: chat, contextTokens: 200000, clamp: true,
      maxOutputTokens: 40,
      price: { input: '1', output: '2' }, backends: [{ url: 'simulator:', model: inner-small }] }`,
    }),
});
const messages = [{ role: 'user' as const, content: 'Say something about gateways.' }];

describe('the official client', () => {
  it('completes a chat, and is charged for the reported usage', async () => {
    const { openai, tenantId } = await gateway.caller();
    const completion = await openai.chat.completions.create({ model: 'small', messages, max_tokens: 30 });
    expect(completion).toMatchObject({
      object: 'chat.completion',
      model: 'small',
      choices: [{ index: 0, message: { role: 'assistant' } }],
    });
    expect(completion.id).toMatch(/^chatcmpl-[0-9a-z]{26}$/);
    expect(JSON.stringify(completion)).not.toMatch(/inner-|fingerprint|sim/);
    const { prompt_tokens, completion_tokens, total_tokens } = completion.usage!;
    expect(total_tokens).toBe(prompt_tokens + completion_tokens);
    const [event] = await gateway.events(tenantId, 1);
    expect(event).toMatchObject({
      promptTokens: prompt_tokens,
      completionTokens: completion_tokens,
      estimated: false,
      outcome: 'complete',
      overrunNanos: '0',
    });
    expect(BigInt(event!.costNanos)).toBe(costNanos(event!, event!.price));
    const { settledNanos, pendingHolds } = await gateway.snapshot(tenantId);
    expect({ settledNanos, pendingHolds }).toEqual({ settledNanos: BigInt(event!.costNanos), pendingHolds: 0 });
  });

  it('streams the same words, with the same usage on the chunk with the finish_reason', async () => {
    const { openai, tenantId } = await gateway.caller();
    const plain = await openai.chat.completions.create({ model: 'small', messages, max_tokens: 30 });
    const chunks = [];
    for await (const chunk of await openai.chat.completions.create({
      model: 'small',
      messages,
      max_tokens: 30,
      stream: true,
    }))
      chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]!.delta.content ?? '').join('')).toBe(
      plain.choices[0]!.message.content,
    );
    expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe(plain.choices[0]!.finish_reason);
    expect(chunks.at(-1)!.usage).toEqual(plain.usage);
    expect(chunks.slice(0, -1).every((chunk) => !('usage' in chunk))).toBe(true);
    expect(new Set(chunks.map(({ id, model, created }) => `${id} ${model} ${created}`)).size).toBe(1);
    expect(JSON.stringify(chunks)).not.toMatch(/inner-|fingerprint|service_tier/);
    const [first, second] = await gateway.events(tenantId, 2);
    expect(second!.costNanos).toBe(first!.costNanos);
  });

  it('gets usage in a separate chunk if it asks for it', async () => {
    const { openai } = await gateway.caller();
    const chunks = [];
    const stream = await openai.chat.completions.create({
      model: 'small',
      messages,
      max_tokens: 5,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 5 } });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  it('gets several choices, each with its own end, and pays for all', async () => {
    const { openai, tenantId } = await gateway.caller();
    const plain = await openai.chat.completions.create({ model: 'small', messages, max_tokens: 10, n: 3 });
    const texts = ['', '', ''];
    const ends: (string | null)[] = [];
    let usage;
    for await (const chunk of await openai.chat.completions.create({
      model: 'small',
      messages,
      max_tokens: 10,
      n: 3,
      stream: true,
    })) {
      for (const { index, delta, finish_reason } of chunk.choices) {
        texts[index] += delta.content ?? '';
        if (finish_reason) ends.push(finish_reason);
      }
      usage = chunk.usage ?? usage;
    }
    expect(texts).toEqual(plain.choices.map((choice) => choice.message.content));
    expect(ends).toHaveLength(3);
    expect(usage).toEqual(plain.usage);
    expect((await gateway.events(tenantId, 2)).map((event) => event.completionTokens)).toEqual([30, 30]);
  });

  it('calls tools, streamed and plain', async () => {
    const { openai } = await gateway.caller();
    const tools = [
      {
        type: 'function' as const,
        function: {
          name: 'weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    ];
    const plain = await openai.chat.completions.create({ model: 'small', messages, tools });
    const call = plain.choices[0]!.message.tool_calls![0] as { function: { name: string; arguments: string } };
    const stream = openai.chat.completions.stream({ model: 'small', messages, tools });
    const streamed = (await stream.finalChatCompletion()).choices[0]!.message.tool_calls![0] as typeof call;
    expect(streamed.function).toMatchObject({ name: 'weather', arguments: call.function.arguments });
  });

  it('makes legacy completions, plain and streamed, and embeddings, and lists models', async () => {
    const { openai, tenantId } = await gateway.caller();
    const plain = await openai.completions.create({ model: 'small', prompt: 'Once upon a time', max_tokens: 12 });
    expect(plain).toMatchObject({ object: 'text_completion', model: 'small', usage: { completion_tokens: 12 } });
    expect(plain.id).toMatch(/^cmpl-/);
    let text = '';
    let usage;
    for await (const chunk of await openai.completions.create({
      model: 'small',
      prompt: 'Once upon a time',
      max_tokens: 12,
      stream: true,
    })) {
      text += chunk.choices[0]!.text;
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe(plain.choices[0]!.text);
    expect(usage).toEqual(plain.usage);
    const embeddings = await openai.embeddings.create({ model: 'embed', input: ['one', 'two'] });
    expect(embeddings.data).toHaveLength(2);
    expect(embeddings.data[0]!.embedding.length).toBeGreaterThan(0);
    expect(embeddings).toMatchObject({ object: 'list', model: 'embed' });
    expect(embeddings.usage).toEqual({ prompt_tokens: 2, completion_tokens: 0, total_tokens: 2 });
    const models = await openai.models.list();
    expect(models.data.map(({ id }) => id)).toEqual([
      'small',
      'long',
      'eyes',
      'embed',
      'org/tuned/small',
      'gpt-4o-mini',
    ]);
    expect(models.data[0]).toEqual({
      id: 'small',
      object: 'model',
      created: expect.any(Number),
      owned_by: expect.any(String),
      context_length: expect.any(Number),
      max_model_len: (models.data[0] as unknown as { context_length: number }).context_length,
      pricing: {
        currency: 'USD',
        prompt: expect.stringMatching(/^\d+(\.\d+)?$/),
        input_cache_read: expect.any(String),
        completion: expect.any(String),
        request: expect.any(String),
      },
    });
    expect(await openai.models.retrieve('small')).toEqual(models.data[0]);
    const kinds = (await gateway.events(tenantId, 3)).map((event) => event.kind);
    expect(kinds.sort()).toEqual(['completion', 'completion', 'embedding']);
  });

  it('retrieves a model whose id has slashes, and gets an error for a model that it may not use', async () => {
    const { openai } = await gateway.caller();
    for (const id of ['org/tuned/small', 'gpt-4o-mini']) expect((await openai.models.retrieve(id)).id).toBe(id);
    await expect(openai.models.retrieve('none')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
    const limited = await gateway.caller({ profile: 'one-model' });
    await expect(limited.openai.models.retrieve('long')).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
    for (const path of ['/v1/models/org/tuned/small', '/models/org%2Ftuned%2Fsmall']) {
      const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${limited.key}` } });
      expect(answer.status).toBe(404);
    }
  });

  it.each([
    ['small', 'Say something about gateways.'],
    ['large, read by a worker', 'Say something about gateways. '.repeat(5_000)],
  ])('uses a model by its alias, and `max_tokens` is lowered where the model says so: %s', async (_, content) => {
    const { openai, tenantId } = await gateway.caller();
    const asked = { model: 'gpt-4o-mini', messages: [{ role: 'user' as const, content }], max_tokens: 1_000 };
    const plain = await openai.chat.completions.create(asked);
    expect(plain.model).toBe('gpt-4o-mini');
    expect(plain.usage!.completion_tokens).toBeLessThanOrEqual(40);
    const [event] = await gateway.events(tenantId, 1);
    expect(event).toMatchObject({ model: 'org/tuned/small', completionTokens: plain.usage!.completion_tokens });
    for await (const chunk of await openai.chat.completions.create({ ...asked, stream: true }))
      expect(chunk.model).toBe('gpt-4o-mini');
  });

  it('reaches the same routes without /v1', async () => {
    const caller = await gateway.caller();
    const answer = await gateway.post('/chat/completions', { model: 'small', messages, max_tokens: 3 }, caller);
    expect(answer.status).toBe(200);
    expect(
      (await gateway.post('/v1/chat/completions', { model: 'small', messages, max_tokens: 3 }, caller)).status,
    ).toBe(200);
  });
});
