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

describe('a model whose backends all allow it', () => {
  const named = (name: string) => ({ type: 'function', function: { name } });
  const dotted: [string, object][] = [
    ['tools[1].function.name', { tools: [named('f'), named('files.read')] }],
    ['tools[0].custom.name', { tools: [{ type: 'custom', custom: { name: 'a.b' } }] }],
    ['functions[0].name', { functions: [{ name: 'a.b' }] }],
    ['tool_choice.function.name', { tools: [named('f')], tool_choice: named('a.b') }],
    ['function_call.name', { functions: [{ name: 'f' }], function_call: { name: 'a.b' } }],
  ];
  const refusal = (param: string) => expect.objectContaining({ status: 400, code: 'invalid_value', param }) as Error;

  it.each(dotted)('has dots in %s, and others refuse them', (param, more) => {
    expect(() => read(more, {})).toThrow(refusal(param));
    const { outgoing } = read(more, { dottedNames: true });
    expect(outgoing.fields.toString()).toMatch(/"(files\.read|a\.b)"/);
    expect(() => read({ tools: [named('a b')] }, { dottedNames: true })).toThrow(refusal('tools[0].function.name'));
  });

  it('has up to 16 stop sequences, and others have 4', () => {
    const stops = (count: number) => ({ stop: Array.from({ length: count }, (_, index) => `s${index}`) });
    expect(read(stops(4), {}).model).toBe('m');
    expect(() => read(stops(5), {})).toThrow(refusal('stop'));
    expect(read(stops(16), { maxStops: 16 }).outgoing.fields.toString()).toContain('"s15"');
    expect(() => read(stops(17), { maxStops: 16 })).toThrow(refusal('stop'));
  });
});
