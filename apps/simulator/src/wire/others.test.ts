import { countTokens, encode } from 'gpt-tokenizer/encoding/o200k_base';
import { useSimulator } from '../use-simulator.fixture';

describe('legacy completions', () => {
  const sim = useSimulator();

  it('complete a string, strings and token arrays, with n choices for each prompt', async () => {
    const one = await sim.openai.completions.create({ model: 'm', prompt: 'Once upon a time' });
    expect(one).toMatchObject({
      object: 'text_completion',
      choices: [{ index: 0, finish_reason: 'stop', logprobs: null }],
    });
    expect(one.usage).toEqual({ prompt_tokens: 4, completion_tokens: 60, total_tokens: 64 });
    expect(countTokens(one.choices[0]!.text)).toBe(60);
    const two = await sim.openai.completions.create({
      model: 'm',
      prompt: ['Once upon a time', 'b'],
      n: 2,
      max_tokens: 5,
    });
    expect(two.choices.map((choice) => choice.index)).toEqual([0, 1, 2, 3]);
    expect(two.usage).toEqual({ prompt_tokens: 5, completion_tokens: 20, total_tokens: 25 });
    expect(one.choices[0]!.text.startsWith(two.choices[0]!.text)).toBe(true);
    const tokens = await sim.openai.completions.create({
      model: 'm',
      prompt: [encode('Once upon'), [1, 2, 3]],
      max_tokens: 1,
    });
    expect(tokens.usage!.prompt_tokens).toBe(5);
    expect((await sim.openai.completions.create({ model: 'm', prompt: [1, 2, 3, 4] })).usage!.prompt_tokens).toBe(4);
  });

  it('have a bound over all prompts and choices', async () => {
    const prompt = Array.from({ length: 300 }, () => 'a');
    await expect(sim.openai.completions.create({ model: 'm', prompt, n: 128 })).rejects.toMatchObject({
      status: 400,
      param: 'n',
    });
    const short = await sim.openai.completions.create({ model: 'm', prompt, n: 2, max_tokens: 1 });
    expect(short.choices).toHaveLength(600);
  });

  it('stream the same text, one token per chunk, with usage if requested', async () => {
    const whole = await sim.openai.completions.create({ model: 'm', prompt: 'a', stop: '.' });
    const chunks = [];
    const stream = await sim.openai.completions.create({
      model: 'm',
      prompt: 'a',
      stop: '.',
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join('')).toBe(whole.choices[0]!.text);
    expect(chunks).toHaveLength(whole.usage!.completion_tokens + 2);
    expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
  });
});

describe('embeddings', () => {
  const sim = useSimulator({ models: { small: { embeddingDimensions: 8 } } });

  it('are unit vectors, the same for the same text, in the order of the inputs', async () => {
    const { data, usage } = await sim.openai.embeddings.create({
      model: 'e',
      input: ['river', 'garden gate', 'river'],
    });
    expect(data.map((row) => row.index)).toEqual([0, 1, 2]);
    expect(data[0]!.embedding).toEqual(data[2]!.embedding);
    expect(data[0]!.embedding).not.toEqual(data[1]!.embedding);
    for (const { embedding } of data) {
      expect(embedding).toHaveLength(256);
      expect(Math.hypot(...embedding)).toBeCloseTo(1, 5);
    }
    const tokens = countTokens('river') * 2 + countTokens('garden gate');
    expect(usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
  });

  it('have the same numbers as floats and as base64, and as many as dimensions asks for', async () => {
    const row = async (body: object) =>
      (
        (await (await sim.post('/embeddings', { model: 'small', input: 'river', ...body })).json()) as {
          data: { embedding: unknown }[];
        }
      ).data[0]!.embedding;
    const floats = (await row({})) as number[];
    const bytes = Buffer.from((await row({ encoding_format: 'base64' })) as string, 'base64');
    expect(floats).toHaveLength(8);
    expect(Array.from({ length: 8 }, (_, i) => bytes.readFloatLE(i * 4))).toEqual(floats.map(Math.fround));
    const short = (await row({ dimensions: 3 })) as number[];
    expect(Math.hypot(...short)).toBeCloseTo(1, 5);
    expect(short[1]! / short[0]!).toBeCloseTo(floats[1]! / floats[0]!, 4);
  });

  it('accept token arrays', async () => {
    const { data, usage } = await sim.openai.embeddings.create({ model: 'e', input: [[1, 2], [3]] });
    expect(data).toHaveLength(2);
    expect(usage.prompt_tokens).toBe(3);
  });
});

describe('the simulator', () => {
  const sim = useSimulator({
    strict: true,
    apiKey: 'sk-backend',
    models: { known: {}, 'other/known': {} },
    recordRequests: 2,
  });

  it('lists the configured models', async () => {
    const models = [];
    for await (const model of sim.openai.models.list()) models.push(model);
    expect(models).toMatchObject([{ id: 'known', object: 'model', owned_by: 'simulator' }, { id: 'other/known' }]);
  });

  it('refuses an unknown model if strict, and a wrong key, route, method, body or field', async () => {
    const messages = [{ role: 'user' as const, content: 'hi' }];
    const headers = { authorization: 'Bearer sk-backend' };
    await expect(sim.openai.chat.completions.create({ model: 'unknown', messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
    expect((await sim.post('/chat/completions', { model: 'known', messages })).status).toBe(401);
    expect((await sim.post('/nowhere', {}, { headers })).status).toBe(404);
    expect((await fetch(`${sim.simulator.url}/embeddings`, { headers })).status).toBe(405);
    expect((await sim.post('/embeddings', {}, { headers, body: '{' })).status).toBe(400);
    for (const bad of [
      { messages },
      { model: 'known' },
      { model: 'known', messages: [] },
      { model: 'known', messages, n: 0 },
      { model: 'known', messages, max_tokens: 1.5 },
      { model: 'known', messages, simulator: { speed: 1 } },
    ]) {
      const response = await sim.post('/chat/completions', bad, { headers });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({
        error: { type: 'invalid_request_error', param: expect.any(String) },
      });
    }
  });

  it('keeps the latest requests, so that a test can check what was sent', async () => {
    for (const user of ['a', 'b', 'c']) await sim.openai.completions.create({ model: 'known', prompt: 'x', user });
    expect(sim.simulator.requests()).toMatchObject([
      { body: { user: 'b' } },
      { method: 'POST', path: '/v1/completions', headers: { authorization: 'Bearer sk-backend' }, body: { user: 'c' } },
    ]);
    const response = await fetch(new URL('/_simulator/requests', sim.simulator.url));
    expect(await response.json()).toHaveLength(2);
  });
});
