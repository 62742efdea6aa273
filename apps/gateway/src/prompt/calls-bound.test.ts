import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { argumentTokens, escapeTokens } from '../body/layout';
import { cheapBound, countPrompt } from './prompt-bound';
import { PromptEstimate } from './prompt-estimate';
import { countTokens } from './tokenizer';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_129);
const MODEL = bodyRules({ contextTokens: 1_000_000 });
const tokens = (text: string) => countTokens('o200k_base', text);

describe('a template that writes calls and results as JSON', () => {
  const request = (body: object) =>
    readRequest('chat', Buffer.from(JSON.stringify({ model: 'm', ...body })), () => MODEL);
  const chat = (...messages: object[]) => request({ messages: [{ role: 'user', content: 'Go on.' }, ...messages] });
  const called = (json: string) => [{ id: 'c', type: 'function', function: { name: 'f', arguments: json } }];
  const result = (content: unknown) => ({ role: 'tool', tool_call_id: 'c', content });
  const spaced = (json: string) => json.replace(/[,:]/g, '$& ');
  const inTags = (json: string) =>
    Object.entries(JSON.parse(json) as object)
      .map(([name, value]) => `<parameter=${name}>\n${value}\n</parameter>\n`)
      .join('');

  it.each([
    ['a list of numbers', spaced, JSON.stringify(Array<number>(2_000).fill(1))],
    ['many objects', spaced, JSON.stringify(Array(500).fill({ a: 1, b: 'x' }))],
    ['nested objects', spaced, '{"a":'.repeat(90) + '1' + '}'.repeat(90)],
    ['many arguments', inTags, JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, 1])))],
    [
      'an ordinary edit',
      inTags,
      JSON.stringify({ path: 'src/a.ts', old: 'const a = 1;', new: 'let a = 2;', all: true }),
    ],
  ])('is within what is held for the arguments of an earlier call: %s', (_, written, json) => {
    for (const message of [
      { role: 'assistant', content: null, tool_calls: called(json) },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: json } },
    ]) {
      const ask = chat(message);
      const { total, most } = countPrompt(ask, MODEL);
      expect(most).toBeGreaterThanOrEqual(countPrompt(chat(), MODEL).total + tokens(written(json)));
      expect(cheapBound(ask, MODEL)).toBeGreaterThanOrEqual(most);
      expect(PromptEstimate.toHold(ask, MODEL, 1).counted()).toMatchObject({ exactCount: total, upperBound: most });
    }
  });

  it.each([
    '\n'.repeat(5_000),
    '"'.repeat(3_000),
    '\u0001'.repeat(900),
    '{"a": "b"}\n'.repeat(400),
    'if (a) {\n\tb();\n}\n',
  ])('is within what is held for the result of a tool: %j', (text) => {
    const plain = countPrompt(chat({ role: 'user', content: text }), MODEL);
    expect(plain.most).toBe(plain.total);
    for (const content of [text, [{ type: 'text', text }]]) {
      const ask = chat(result(content));
      const { total, most } = countPrompt(ask, MODEL);
      expect(most).toBeGreaterThanOrEqual(total - tokens(text) + tokens(JSON.stringify(text)));
      expect(cheapBound(ask, MODEL)).toBeGreaterThanOrEqual(most);
    }
  });

  it.each(['<'.repeat(4_000), 'a < b && c > d; ', "it's "])(
    'is within what is held with JSON safe in HTML: %j',
    (text) => {
      const safe = (json: string) =>
        json.replace(/[<>&']/g, (one) => `\\u00${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
      const tools = [{ type: 'function', function: { name: 'f', description: text } }];
      const ofTools = request({ messages: [{ role: 'user', content: 'Go on.' }], tools });
      const ofCall = chat({ role: 'assistant', content: null, tool_calls: called(JSON.stringify({ a: text })) });
      for (const [ask, json] of [
        [ofTools, JSON.stringify(tools)],
        [ofCall, JSON.stringify({ a: text })],
        [chat(result(text)), JSON.stringify(text)],
      ] as const) {
        const { total, most } = countPrompt(ask, MODEL);
        expect(most - total).toBeGreaterThanOrEqual(tokens(safe(json)) - tokens(json));
        expect(cheapBound(ask, MODEL)).toBeGreaterThanOrEqual(most);
      }
    },
  );

  it('makes the prompt no longer than the context', () => {
    const ask = chat(result('\n'.repeat(5_000)));
    const { total, most } = countPrompt(ask, { ...MODEL, contextTokens: 2_000 });
    expect(total).toBeLessThan(1_000);
    expect(most).toBe(2_000);
  });

  it('adds little to the hold of ordinary calls and results', () => {
    const json = JSON.stringify({ city: 'Berlin', unit: 'celsius' });
    const ask = chat({ role: 'assistant', content: null, tool_calls: called(json) }, result('It is 7 °C in Berlin.'));
    const { total, most } = countPrompt(ask, MODEL);
    expect(most - total).toBe(2 * 8 + 3);
  });
});

describe('JSON that a template writes again', () => {
  const words = fc.constantFrom(
    'the',
    'Zebra',
    'if (a) {',
    '"',
    '\\',
    '\n',
    '\t',
    '\u000b',
    ' ',
    '    ',
    'ж',
    '漢',
    '}',
    ',',
    ':',
  );

  it('has no more tokens as a string than are added for its escapes', async () => {
    await assertRuns(
      fc.property(fc.array(words, { maxLength: 60 }), (parts) => {
        const text = parts.join('');
        // Two for the quotes, which take the place of syntax of the body.
        expect(tokens(JSON.stringify(text))).toBeLessThanOrEqual(tokens(text) + escapeTokens(text) + 2);
      }),
      { seed: SEED, leastRuns: 200 },
    );
  });

  it('has no more tokens with blanks than are added for commas and colons', async () => {
    await assertRuns(
      fc.property(fc.object({ maxDepth: 4, values: [fc.integer(), words, fc.constant(null)] }), (value) => {
        const json = JSON.stringify(value);
        const spaced = JSON.stringify(value, null, 1).replace(/\n */g, ' ');
        expect(tokens(spaced)).toBeLessThanOrEqual(tokens(JSON.stringify(json)) + argumentTokens(json));
      }),
      { seed: SEED, leastRuns: 200 },
    );
  });
});
