import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';
import type { BodyRules } from './rules';

const TOOL = { type: 'function', function: { name: 'f' } };
const SCHEMA = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } };

const read = (more: object, rules: Partial<BodyRules>) => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...more };
  return readRequest('chat', Buffer.from(JSON.stringify(body)), () => bodyRules(rules));
};

describe('a model that cannot use', () => {
  it.each<[string, object, Partial<BodyRules>, string, RegExp]>([
    ['tools', { tools: [TOOL] }, { tools: false }, 'tools', /'m' does not support tools/],
    ['tools', { functions: [{ name: 'f' }] }, { tools: false }, 'functions', /does not support tools/],
    [
      'a schema',
      { response_format: SCHEMA },
      { jsonSchema: false },
      'response_format',
      /does not support a JSON schema/,
    ],
  ])('%s refuses them with the reason', (_, more, rules, param, message) => {
    expect(() => read(more, rules)).toThrow(
      expect.objectContaining({
        status: 400,
        code: 'unsupported_parameter',
        param,
        message: expect.stringMatching(message) as string,
      }),
    );
    expect(read(more, {}).model).toBe('m');
  });

  it('tools or schemas takes requests that ask for neither', () => {
    const rules = { tools: false, jsonSchema: false };
    expect(read({ tools: [], response_format: { type: 'json_object' } }, rules).tools).toBe(0);
    expect(read({}, rules).affinity).toBeNull();
  });
});
