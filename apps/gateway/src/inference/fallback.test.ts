import { metrics } from '@tollgate/runtime';
import type { Backend, CatalogModel } from '../catalog/catalog';
import { PromptEstimate } from '../prompt/prompt-estimate';
import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { fitFallbacks, noteUnpaid } from './fallback';

const known = new Set(['seed_text', 'guided_json']);
const able = {
  dottedNames: true,
  maxStopSequences: 16,
  maxTokensPerImage: 100,
  mediaUrls: true,
  passthrough: known,
} as const;
const messages = [{ role: 'user', content: 'hi' }];
const withImage = (url: string) => ({
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
});
const address = withImage('https://images.example.com/a.png');
const tool = (name: string) => ({ type: 'function', function: { name, parameters: {} } });

type Rules = Partial<CatalogModel>;
const modelWith = (rules: Rules, passthrough: ReadonlySet<string>[] = [known]): CatalogModel => {
  const backends = passthrough.map((fields) => ({ passthrough: fields }) as Backend);
  return { ...bodyRules({ ...able, ...rules }), backends, ...rules } as CatalogModel;
};
const asked = modelWith({});
const ASKED_TOKENS = 4_096;

/** What a request with these fields gets, with one fallback. */
function fit(fallback: CatalogModel, fields: object, of = asked, kind: 'chat' | 'completion' = 'chat') {
  const chat = kind === 'chat' ? { messages } : {};
  const raw = Buffer.from(JSON.stringify({ model: of.id, ...chat, ...fields }));
  const request = readRequest(kind, raw, () => of);
  const outputTokens = Math.min(request.maxTokens ?? Infinity, of.maxOutputTokens);
  const { fallbacks, prompt } = fitFallbacks([fallback], request, of, PromptEstimate.toHold(request, of, outputTokens));
  return { serves: fallbacks.length === 1, prompt };
}

async function leftOut(id: string): Promise<string[]> {
  const counter = metrics.getSingleMetric('tollgate_model_fallbacks_left_out_total')!;
  const { values } = (await counter.get()) as { values: { labels: { fallback?: string; why?: string } }[] };
  return values.filter(({ labels }) => labels.fallback === id).map(({ labels }) => labels.why!);
}

describe('a fallback model', () => {
  it.each<[string, Rules, object]>([
    ['tools', { tools: false }, { tools: [tool('a')] }],
    ['tools', { dottedNames: false }, { tools: [tool('a.b')] }],
    ['stop', { maxStopSequences: 4 }, { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['schema', { jsonSchema: false }, { response_format: { type: 'json_object' } }],
    ['media', { mediaUrls: false }, address],
    ['media', { mediaUrls: ['example.com'] }, address],
    ['output', { maxOutputTokens: 5 }, { max_tokens: 6 }],
    ['context', { contextTokens: 5 }, {}],
  ])('does not serve a request for lack of %s if it cannot: %j', async (why, rules, fields) => {
    expect(fit(modelWith({}), fields).serves).toBe(true);
    const id = `lacks ${JSON.stringify(rules)}`;
    expect(fit(modelWith({ ...rules, id }), fields).serves).toBe(false);
    expect(await leftOut(id)).toEqual([why]);
  });

  it('serves no request with a field that one of its backends does not know', async () => {
    const fields = { guided_json: { type: 'object' } };
    expect(fit(modelWith({}, [known, known]), fields).serves).toBe(true);
    const id = 'mixed';
    expect(fit(modelWith({ id }, [known, new Set(['seed_text'])]), fields).serves).toBe(false);
    expect(await leftOut(id)).toEqual(['fields']);
    expect(fit(modelWith({}, [new Set()]), {}).serves).toBe(true);
  });

  it('does not serve a prompt with a token id that it surely lacks', async () => {
    const serves = (vocabularyTokens: number | null, prompt: unknown, id = 'm') =>
      fit(modelWith({ vocabularyTokens, id }), { prompt }, asked, 'completion').serves;
    expect([serves(8, [1, 7]), serves(null, [1, 8]), serves(8, 'text')]).toEqual([true, true, true]);
    expect(serves(8, [[1], [8]], 'few tokens')).toBe(false);
    expect(await leftOut('few tokens')).toEqual(['tokens']);
  });

  it.each<[boolean, CatalogModel['mediaUrls'], CatalogModel['mediaUrls']]>([
    [true, ['example.com'], ['example.com']],
    [true, ['images.example.com'], ['other.org', 'example.com']],
    [true, ['example.com'], true],
    [false, ['example.com'], ['images.example.com']],
    [false, ['example.com', 'other.org'], ['example.com']],
    [false, ['example.com'], ['ample.com']],
    [false, ['example.com'], false],
  ])('serves an address of media (%j) if it may fetch from all domains of the model: %j, %j', (serves, of, own) => {
    expect(fit(modelWith({ mediaUrls: own }), address, modelWith({ mediaUrls: of })).serves).toBe(serves);
    // The content itself is fetched by nobody.
    expect(
      fit(modelWith({ mediaUrls: own }), withImage('data:image/png;base64,aaaa'), modelWith({ mediaUrls: of })).serves,
    ).toBe(true);
  });

  it('is left out for lack of credit by the metric too', async () => {
    const [paid, unpaid] = [modelWith({ id: 'paid' }), modelWith({ id: 'unpaid' })];
    noteUnpaid(asked, [paid, unpaid], [paid]);
    expect([await leftOut('paid'), await leftOut('unpaid')]).toEqual([[], ['credit']]);
  });
});

describe('the room at a fallback', () => {
  const content = 'A few English words with four bytes in each of their tokens. '.repeat(130);
  const long = { messages: [{ role: 'user', content }], max_tokens: 1_000 };

  it('is counted if the bytes of the prompt alone leave too little, and no hold covers less', () => {
    const { serves, prompt } = fit(modelWith({ contextTokens: 8_192 }), long);
    expect([serves, prompt.isExact]).toEqual([true, true]);
    expect(prompt.upperBound).toBe(prompt.counted().exactCount);
    expect(prompt.upperBound).toBeLessThan(content.length / 3);
    expect(fit(modelWith({ contextTokens: prompt.upperBound + 1_000 }), long).serves).toBe(true);
    expect(fit(modelWith({ contextTokens: prompt.upperBound + 999 }), long).serves).toBe(false);
  });

  it('is counted if the bytes would shorten the answer of a request that names no limit', () => {
    const short = { messages: [{ role: 'user', content: content.slice(0, 7_000) }] };
    const of = modelWith({ maxOutputTokens: ASKED_TOKENS });
    const { serves, prompt } = fit(modelWith({ contextTokens: 8_192 }), short, of);
    expect([serves, prompt.isExact]).toEqual([true, true]);
    expect(prompt.roomFor(8_192, 8_192)).toBeGreaterThan(6_000);
  });

  it('costs no count if the bytes leave enough, or if it serves for another reason not', () => {
    expect(fit(modelWith({ contextTokens: 16_384 }), long).prompt.isExact).toBe(false);
    expect(fit(modelWith({ contextTokens: 8_192, maxOutputTokens: 999 }), long).prompt.isExact).toBe(false);
  });

  it('is that beside the longest prompt of a completion, not beside all together', () => {
    const prompts = { prompt: Array(6).fill(content.slice(0, 4_000)), max_tokens: 1_000 };
    const { serves, prompt } = fit(modelWith({ contextTokens: 2_048 }), prompts, asked, 'completion');
    expect([serves, prompt.isExact]).toEqual([true, true]);
    expect(prompt.upperBound).toBeGreaterThan(2_048);
    expect(prompt.roomFor(2_048, 2_048)).toBeGreaterThan(1_000);
  });
});
