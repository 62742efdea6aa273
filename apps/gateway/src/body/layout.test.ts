import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';
import { indented, layoutBytes } from './layout';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_129);
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const growthOf = (value: unknown) => Buffer.byteLength(indented(value)) - bytesOf(value);

describe('the layout of indented JSON', () => {
  it.each([[null], [0], ['a\n'], [[]], [{}], [[[]]], [{ a: {} }], [JSON.parse('{"__proto__":[1],"a":{"":2}}')]])(
    'has as many bytes as are computed: %j',
    (value) => {
      expect(layoutBytes(value)).toBe(growthOf(value));
    },
  );

  it('has as many bytes as are computed, for any JSON', async () => {
    await assertRuns(
      fc.property(fc.jsonValue({ maxDepth: 8, stringUnit: 'grapheme' }), (value) => {
        expect(JSON.stringify(value, null, 4).length - JSON.stringify(value).length).toBe(layoutBytes(value));
      }),
      { seed: SEED, leastRuns: 200 },
    );
  });

  it('is that of tools and of passed-on objects, and of nothing else', () => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { enum: [[1], ['ж']] } } }];
    const documents = [{ text: 'a' }];
    const format = { type: 'json_schema', json_schema: { name: 'a', schema: { enum: [[1], [2]] } } };
    const rules = bodyRules({ passthrough: new Set(['documents', 'grammar', 'metadata', 'top_k']) });
    const sizes = (more: object) => {
      const body = { model: 'm', messages: [{ role: 'user', content: 'a' }], ...more };
      const { outgoing } = readRequest('chat', Buffer.from(JSON.stringify(body)), () => rules);
      return [outgoing.indentedBytes, outgoing.layoutBytes];
    };
    const expected = (...values: unknown[]) => [
      values.reduce((sum: number, value) => sum + Buffer.byteLength(indented(value)), 0),
      values.reduce((sum: number, value) => sum + growthOf(value), 0),
    ];
    expect(sizes({})).toEqual([0, 0]);
    expect(sizes({ tools })).toEqual(expected(tools));
    expect(sizes({ tools, tool_choice: 'auto', response_format: format })).toEqual(expected(tools));
    const choice = { type: 'function', function: { name: 'f' } };
    expect(sizes({ tools, tool_choice: choice, documents })).toEqual(expected(tools, choice, documents));
    expect(sizes({ metadata: { a: 'b' }, grammar: 'root ::= "a"', top_k: 5 })).toEqual([0, 0]);
  });
});
