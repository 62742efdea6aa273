import { anyCharacter, assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { createRequire } from 'node:module';
import type { Tokenizer } from '../../../apps/gateway/src/catalog/catalog';
import { type InferenceRequest, readRequest } from '../../../apps/gateway/src/body/inference-request';
import type { BodyRules } from '../../../apps/gateway/src/body/rules';
import { bodyRules } from '../../../apps/gateway/src/body/body-rules.fixture';
import { cheapBound, countPrompt } from '../../../apps/gateway/src/prompt/prompt-bound';
import { readChatPrompt } from '../../../apps/simulator/src/wire/prompt';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_126);
const LEAST_RUNS = 100;
const TIME_BOX_MS = 1_500;
const TOKENIZERS: Tokenizer[] = ['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'];
/**
 * Models of the library that have a tokenizer, with the tokens that their templates add to a message. Some count
 * functions too.
 */
const LIBRARY_MODELS: [Tokenizer, string, number][] = [
  ['o200k_base', 'gpt-4o', 3],
  ['cl100k_base', 'gpt-4-turbo', 3],
  ['cl100k_base', 'gpt-4', 3],
  ['cl100k_base', 'gpt-3.5-turbo', 4],
];
const IMAGE_TOKENS = 85;
const AUDIO_TOKENS = 85;

interface Library {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
  encodeChat(messages: object[]): number[];
  countChatCompletionTokens?: (request: object) => number;
}
const load = (path: string) => createRequire(__filename)(`gpt-tokenizer/${path}`) as Library;

const modelOf = (tokenizer: Tokenizer, templateTokensPerMessage = 3) =>
  bodyRules({ tokenizer, templateTokensPerMessage, maxTokensPerImage: IMAGE_TOKENS, maxTokensPerAudio: AUDIO_TOKENS });
const embedderOf = (tokenizer: Tokenizer) => bodyRules({ tokenizer, kind: 'embedding' });

/**
 * Any Unicode: letters of all scripts, combining characters, control characters, lone surrogates, and texts that look
 * like a special token.
 */
const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 120 }),
  fc.string({ unit: 'grapheme', maxLength: 120 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 }).map((codes) => String.fromCharCode(...codes)),
  fc.lorem(),
  fc.constantFrom(
    '',
    '<|endoftext|>',
    '<|im_start|>system',
    '\u0000',
    '\ud83d',
    '👩‍👩‍👧‍👦',
    'ﷺ',
    '𒐫',
    '\n'.repeat(50),
    '💥'.repeat(30),
  ),
);
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,40}$/);
/** A number as clients may write it. It goes into the body unchanged. */
const number = fc.constantFrom('1e20', '-1e20', '1E+19', '1e-6', '0.1', '1e300', '12345678901234567890', '-0', '1.50');
const RAW = '\u0001raw:';
const schema = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    text.map((description) => ({ type: 'string', description })),
    fc
      .array(
        number.map((one) => RAW + one),
        { maxLength: 20 },
      )
      .map((values) => ({ type: 'number', enum: values })),
    fc.record({ type: fc.constant('array'), items: tie('any') }),
    fc
      .dictionary(name, tie('any'), { maxKeys: 4 })
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
  ),
})).any;
const fn = fc.record(
  {
    name,
    description: text,
    parameters: fc.record({ type: fc.constant('object'), properties: fc.dictionary(name, schema, { maxKeys: 4 }) }),
  },
  { requiredKeys: ['name'] },
);
const part = fc.oneof(
  { weight: 3, arbitrary: text.map((value) => ({ type: 'text', text: value })) },
  { weight: 1, arbitrary: fc.constant({ type: 'image_url', image_url: { url: 'data:,' } }) },
  { weight: 1, arbitrary: fc.constant({ type: 'input_audio', input_audio: { data: '', format: 'wav' } }) },
);
const call = fc.record({
  id: name,
  type: fc.constant('function'),
  function: fc.record({ name, arguments: fc.oneof(text, fc.json()) }),
});
const content = fc.oneof(text, fc.array(part, { minLength: 1, maxLength: 4 }));
const message = fc.oneof(
  fc.record(
    {
      role: fc.constantFrom('system', 'developer', 'user', 'function', 'assistant'),
      content,
      name,
      tool_call_id: name,
    },
    { requiredKeys: ['role', 'content'] },
  ),
  fc.record(
    { role: fc.constant('tool'), content, name, tool_call_id: name },
    { requiredKeys: ['role', 'content', 'tool_call_id'] },
  ),
  fc.record({
    role: fc.constant('assistant'),
    content: fc.constant(null),
    tool_calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  }),
);
const chat = fc.record(
  {
    messages: fc.array(message, { minLength: 1, maxLength: 6 }),
    tools: fc.array(
      fn.map((one) => ({ type: 'function', function: one })),
      { maxLength: 4 },
    ),
    response_format: schema.map((one) => ({ type: 'json_schema', json_schema: { name: 'a', schema: one } })),
  },
  { requiredKeys: ['messages'] },
);

/** The body as bytes, with unchanged numbers, and with or without escapes. */
function bodyOf(body: object, escaped: boolean): Buffer {
  const plain = JSON.stringify({ model: 'm', ...body }).replaceAll(/"\\u0001raw:([^"]*)"/g, '$1');
  const json = escaped
    ? plain.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : plain;
  return Buffer.from(json);
}

/** Expects that the charged count is at most the held one, and the held one at most the bound by bytes. */
function expectOrder(ask: InferenceRequest, model: BodyRules): { exact: number; held: number } {
  const { total, longest, most: held } = countPrompt(ask, model);
  expect(longest).toBeLessThanOrEqual(total);
  expect(total).toBeLessThanOrEqual(held);
  expect(held).toBeLessThanOrEqual(cheapBound(ask, model));
  return { exact: total, held };
}

const within = <T extends unknown[]>(property: fc.IProperty<T>) =>
  assertRuns(property, { seed: SEED, leastRuns: LEAST_RUNS, mostRuns: 1_000, timeBoxMs: TIME_BOX_MS });

describe.each(TOKENIZERS)('the bound of a prompt by bytes and by %s', (tokenizer) => {
  const model = modelOf(tokenizer);

  it('is sound for any text: no text has more tokens than bytes', async () => {
    const { countTokens } = load(`encoding/${tokenizer}`);
    await within(
      fc.property(text, (value) => {
        const tokens = countTokens(value, { disallowedSpecial: new Set<string>() });
        expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(value));
      }),
    );
  });

  it('is sound for any chat: roles, names, parts, tools, calls, schemas, and any way to write the body', async () => {
    await within(
      fc.property(chat, fc.boolean(), (body, escaped) => {
        const ask = readRequest('chat', bodyOf(body, escaped), () => model);
        const { exact } = expectOrder(ask, model);
        // The built-in backend has only one tokenizer.
        if (tokenizer === 'o200k_base') expect(exact).toBeGreaterThanOrEqual(readChatPrompt(ask.body!).tokens);
      }),
    );
  });

  it('is sound for tools in each layout that templates write', async () => {
    const { countTokens } = load(`encoding/${tokenizer}`);
    const anyTools = fc.array(
      fc.record({ name, description: text, parameters: fc.dictionary(name, fc.jsonValue({ maxDepth: 6 })) }),
      { minLength: 1, maxLength: 3 },
    );
    await within(
      fc.property(anyTools, (functions) => {
        const ask = readRequest(
          'chat',
          bodyOf({ messages: [{ role: 'user', content: '' }], functions }, false),
          () => model,
        );
        const plain = readRequest('chat', bodyOf({ messages: [{ role: 'user', content: '' }] }, false), () => model);
        const { held } = expectOrder(ask, model);
        for (const indent of [0, 1, 2, 4]) {
          const texts = [JSON.stringify(functions, null, indent)];
          texts.push(functions.map((one) => JSON.stringify(one, null, indent)).join('\n\n'));
          for (const one of texts) {
            const tokens = countTokens(one, { disallowedSpecial: new Set<string>() });
            expect(held).toBeGreaterThanOrEqual(countPrompt(plain, model).total + tokens);
          }
        }
      }),
    );
  });

  it('is sound for completions and embeddings of several prompts', async () => {
    const prompts = fc.oneof(
      text,
      fc.array(text, { minLength: 1, maxLength: 20 }),
      fc.array(fc.array(fc.nat(300_000), { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 5 }),
    );
    await within(
      fc.property(prompts, fc.option(text, { nil: undefined }), fc.boolean(), (prompt, suffix, escaped) => {
        const completion = bodyOf({ prompt, ...(suffix !== undefined && { suffix }) }, escaped);
        expectOrder(
          readRequest('completion', completion, () => model),
          model,
        );
        // An input of embeddings is never empty.
        const input = typeof prompt === 'string' ? prompt || 'x' : prompt.map((one) => (one === '' ? 'x' : one));
        expectOrder(
          readRequest('embedding', bodyOf({ input }, escaped), () => embedderOf(tokenizer)),
          model,
        );
      }),
    );
  });
});

describe.each(LIBRARY_MODELS)('the hold by %s for %s', (tokenizer, libraryModel, tokensPerMessage) => {
  it('covers the library’s count for a chat with OpenAI’s templates, and for functions if it counts them', async () => {
    const library = load(`model/${libraryModel}`);
    const plain = fc.record(
      { role: fc.constantFrom('system', 'user', 'assistant'), content: fc.string({ maxLength: 100 }), name },
      { requiredKeys: ['role', 'content'] },
    );
    const called = fc.record({
      role: fc.constant('assistant'),
      content: fc.constant(''),
      function_call: fc.record({ name, arguments: fc.json() }),
    });
    const body = fc.record(
      {
        messages: fc.array(fc.oneof(plain, called), { minLength: 1, maxLength: 6 }),
        functions: fc.array(fn, { minLength: 1, maxLength: 4 }),
        function_call: fc.oneof(fc.constantFrom('auto', 'none'), fc.record({ name })),
      },
      { requiredKeys: ['messages'] },
    );
    await within(
      fc.property(body, (request) => {
        const model = modelOf(tokenizer, tokensPerMessage);
        const raw = bodyOf(request, false);
        const ask = readRequest('chat', raw, () => model);
        const parsed = JSON.parse(raw.toString()) as { messages: object[] };
        const counted = library.countChatCompletionTokens?.(parsed) ?? library.encodeChat(parsed.messages).length;
        expect(expectOrder(ask, model).held).toBeGreaterThanOrEqual(counted);
      }),
    );
  });
});

it('the count covers numbers with an exponent, which are longer in the prompt than in the body', () => {
  const parameters = `{"enum":[${Array(500).fill('1e20').join()}]}`;
  const tools = `[{"type":"function","function":{"name":"f","parameters":${parameters}}}]`;
  const body = `{"model":"m","messages":[{"role":"user","content":""}],"tools":${tools}}`;
  const model = modelOf('o200k_base');
  const ask = readRequest('chat', Buffer.from(body), () => model);
  expect(countPrompt(ask, model).total).toBeGreaterThan(body.length);
  expectOrder(ask, model);
});
