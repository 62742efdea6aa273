import type { CatalogModel } from '../catalog/catalog';
import { bodyRules } from './body/body-rules.fixture';
import { readRequest } from './body/inference-request';
import { canServe } from './fallback';

const able = { dottedNames: true, maxStopSequences: 16, maxTokensPerImage: 100, mediaUrls: true } as const;
const asked = bodyRules(able);
const messages = [{ role: 'user', content: 'hi' }];
const image = { type: 'image_url', image_url: { url: 'https://images.example.com/a.png' } };
const tool = { type: 'function', function: { name: 'a.b', parameters: {} } };

/** Whether a model with these rules can serve a chat with these fields. */
function serves(rules: Parameters<typeof bodyRules>[0], fields: object): boolean {
  const raw = Buffer.from(JSON.stringify({ model: asked.id, messages, ...fields }));
  const fallback = bodyRules({ ...able, ...rules });
  const models = [fallback, asked] as unknown as CatalogModel[];
  return canServe(
    models[0]!,
    readRequest('chat', raw, () => asked),
    models[1]!,
    10,
  );
}

describe('a fallback model', () => {
  it.each<[string, Parameters<typeof bodyRules>[0], object]>([
    ['tools', { tools: false }, { tools: [tool] }],
    ['names with dots', { dottedNames: false }, { tools: [tool] }],
    ['so many stop sequences', { maxStopSequences: 4 }, { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['a schema', { jsonSchema: false }, { response_format: { type: 'json_object' } }],
    ['addresses of media', { mediaUrls: false }, { messages: [{ role: 'user', content: [image] }] }],
    ['so long an answer', { maxOutputTokens: 5 }, { max_tokens: 6 }],
    ['so long a prompt', { contextTokens: 10 }, {}],
  ])('does not serve a request with %s if it cannot', (_, rules, fields) => {
    expect(serves({}, fields)).toBe(true);
    expect(serves(rules, fields)).toBe(false);
  });
});
