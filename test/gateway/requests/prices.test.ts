import { costNanos, type UsageEvent } from '@tollgate/contracts';
import { stampPrice } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import { readEvents } from '../../../apps/simulator/src/use-simulator.fixture';
import { type Caller, configYaml, useGateway } from '../use-gateway';

const DEAR = { input: '10', cachedInput: '4', output: '20', request: '0.01' };
const models = (price: object) => `
  - { id: priced, kind: chat, contextTokens: 8192, maxOutputTokens: 4096,
      price: ${JSON.stringify(price)}, backends: [{ url: 'simulator:' }] }
  - { id: gratis, kind: chat, contextTokens: 8192, maxOutputTokens: 4096,
      price: { input: '0', output: '0' }, backends: [{ url: 'simulator:' }] }
  - { id: gratis-embed, kind: embedding, contextTokens: 256,
      price: { input: '0', output: '0' }, backends: [{ url: 'simulator:' }] }
  - { id: paid-embed, kind: embedding, contextTokens: 256,
      price: { input: '3', cachedInput: '1', output: '99', request: '0.001' }, backends: [{ url: 'simulator:' }] }`;
const tight = `
      - { id: tight, models: ['*'], limits: { requestsPerMinute: 2, tokensPerMinute: 1000000, concurrency: 5 } }
      - { id: curious, models: ['*'], usageCost: true,
          limits: { requestsPerMinute: 1000, tokensPerMinute: 1000000, concurrency: 5 } }`;
const yaml = (price: object) => configYaml({ models: models(price), plans: tight });

const gateway = useGateway({ yaml: () => yaml(DEAR) });
const messages = [{ role: 'user', content: 'What does it cost?' }];
const chat = (caller: Caller, fields: object = {}, simulator: object = {}) =>
  gateway.post('/v1/chat/completions', { model: 'priced', messages, max_tokens: 10, simulator, ...fields }, caller);

const read = async (answer: Response) => (await answer.json()) as { usage: { prompt_tokens: number } };
/** The one before the end. */
const lastChunk = async (answer: Response) => JSON.parse((await readEvents(answer)).events.at(-2)!) as Usage;
type Usage = { usage: { cost?: number } };
const charged = async (caller: Caller): Promise<UsageEvent> => (await gateway.events(caller.tenantId, 1))[0]!;

describe('a price', () => {
  it('is the sum of disjoint dimensions: input, cached input, output and the request', async () => {
    const caller = await gateway.caller();
    const { usage } = await read(await chat(caller, {}, { cachedTokens: 5 }));
    const event = await charged(caller);
    expect(event).toMatchObject({
      cachedTokens: 5,
      promptTokens: usage.prompt_tokens,
      completionTokens: 10,
      estimated: false,
    });
    const nanos = (usage.prompt_tokens - 5) * 10_000 + 5 * 4_000 + 10 * 20_000 + 10_000_000;
    expect(event.costNanos).toBe(String(nanos));
    expect(event.price).toEqual(stampPrice(DEAR, 'chat'));
  });

  it('of an embedding has no output, even if the configuration has a price for it', async () => {
    const caller = await gateway.caller();
    const answer = await gateway.post('/v1/embeddings', { model: 'paid-embed', input: 'one two three' }, caller);
    const { usage } = await read(answer);
    expect(await charged(caller)).toMatchObject({
      kind: 'embedding',
      completionTokens: 0,
      costNanos: String(usage.prompt_tokens * 3_000 + 1_000_000),
    });
  });

  it('is what an answer says that it costs, for keys whose profile asks for it, and for no others', async () => {
    const embeddings = { model: 'paid-embed', input: 'one two' };
    for (const [profile, says] of [
      ['curious', true],
      ['default', false],
    ] as const) {
      const caller = await gateway.caller({ profile });
      const plain = await read(await chat(caller));
      const streamed = await lastChunk(await chat(caller, { stream: true }));
      const separate = await lastChunk(await chat(caller, { stream: true, stream_options: { include_usage: true } }));
      const vectors = await read(await gateway.post('/v1/embeddings', embeddings, caller));
      const usages = [plain, streamed, separate, vectors].map((answer) => (answer as Usage).usage);
      const costs = (await gateway.events(caller.tenantId, 4)).map(({ costNanos: nanos }) => Number(nanos) / 1e9);
      const shown = usages.map(({ cost }) => cost);
      if (says) expect([...(shown as number[])].sort()).toEqual(costs.sort());
      else expect(shown).toEqual([undefined, undefined, undefined, undefined]);
    }
  });

  it('that changes applies to new requests, and running ones keep their price to the last extension', async () => {
    const [running, later] = [await gateway.caller(), await gateway.caller()];
    // Several slices, so that it is also extended after the change.
    const stream = chat(
      running,
      { stream: true, max_tokens: 3_000 },
      { answerTokens: 3_000, firstTokenDelayMs: 1_500 },
    );
    await eventually(async () => expect((await gateway.snapshot(running.tenantId)).pendingHolds).toBe(1));
    const cheap = { ...DEAR, output: '1' };
    gateway.setConfig(yaml(cheap));
    await eventually(async () => {
      const caller = await gateway.caller();
      await (await chat(caller)).text();
      expect((await charged(caller)).price).toEqual(stampPrice(cheap, 'chat'));
    });
    await (await chat(later)).text();
    expect((await charged(later)).price.version).toBe(stampPrice(cheap, 'chat').version);
    await readEvents(await stream);
    const event = await charged(running);
    expect(event).toMatchObject({ completionTokens: 3_000, outcome: 'complete', price: stampPrice(DEAR, 'chat') });
    expect(BigInt(event.costNanos)).toBe(costNanos(event, stampPrice(DEAR, 'chat')));
    expect(event.price.version).not.toBe(stampPrice(cheap, 'chat').version);
    gateway.setConfig(yaml(DEAR));
  });
});

describe('a free model', () => {
  it.each([true, false])(
    'serves a tenant without credit, long streams included, and holds no money (stream: %s)',
    async (stream) => {
      const caller = await gateway.caller({ nanos: 0n });
      const answer = await chat(caller, { model: 'gratis', stream, max_tokens: 2_500 }, { answerTokens: 2_500 });
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain('"completion_tokens":2500');
      expect(await charged(caller)).toMatchObject({ costNanos: '0', overrunNanos: '0', completionTokens: 2_500 });
      expect(await gateway.snapshot(caller.tenantId)).toMatchObject({ settledNanos: 0n, pendingNanos: 0n });
      expect((await chat(caller)).status).toBe(402);
    },
  );

  it('serves embeddings to a tenant without credit', async () => {
    const caller = await gateway.caller({ nanos: 0n });
    const answer = await gateway.post('/v1/embeddings', { model: 'gratis-embed', input: ['a', 'b'] }, caller);
    expect(answer.status).toBe(200);
    expect(await charged(caller)).toMatchObject({ costNanos: '0', promptTokens: 2 });
  });

  it('serves a tenant with a negative balance, within its limits', async () => {
    const caller = await gateway.caller({ nanos: -5_000n, profile: 'tight' });
    for (let i = 0; i < 2; i++) expect((await chat(caller, { model: 'gratis' })).status).toBe(200);
    const limited = await chat(caller, { model: 'gratis' });
    expect([limited.status, ((await limited.json()) as { error: { code: string } }).error.code]).toEqual([
      429,
      'requests_limit_exceeded',
    ]);
  });

  it('is counted and marked like any other if its backend reports no usage', async () => {
    const caller = await gateway.caller({ nanos: 0n });
    await (await chat(caller, { model: 'gratis' }, { faults: [{ kind: 'missingUsage' }] })).text();
    expect(await charged(caller)).toMatchObject({ estimated: true, completionTokens: 10, costNanos: '0' });
  });
});

describe('an answer whose backend reports no usage', () => {
  it('is counted by the model’s tokenizer and marked if it is an embedding', async () => {
    const caller = await gateway.caller();
    const input = ['one two three', 'four'];
    const plain = await gateway.post('/v1/embeddings', { model: 'paid-embed', input }, await gateway.caller());
    const counted = (await read(plain)).usage.prompt_tokens;
    const simulator = { faults: [{ kind: 'missingUsage' }] };
    const answer = await gateway.post('/v1/embeddings', { model: 'paid-embed', input, simulator }, caller);
    expect((await read(answer)).usage).toEqual({
      prompt_tokens: counted,
      completion_tokens: 0,
      total_tokens: counted,
    });
    expect(await charged(caller)).toMatchObject({
      estimated: true,
      promptTokens: counted,
      costNanos: String(counted * 3_000 + 1_000_000),
    });
  });

  it('is charged for the delivered tokens if it is a stream of several slices', async () => {
    const caller = await gateway.caller();
    const faults = [{ kind: 'missingUsage' }];
    const { events } = await readEvents(
      await chat(caller, { stream: true, max_tokens: 2_500 }, { answerTokens: 2_500, faults }),
    );
    expect(events.at(-1)).toBe('[DONE]');
    const event = await charged(caller);
    expect(event).toMatchObject({ estimated: true, completionTokens: 2_500, outcome: 'complete', overrunNanos: '0' });
    expect(BigInt(event.costNanos)).toBe(costNanos(event, event.price));
  });
});
