import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { countTokens, countWithin } from './tokenizer';
import { readRequest } from '../body/inference-request';
import { bodyRules } from '../body/body-rules.fixture';
import { bytesToCount, cheapBound, countPrompt, mediaTokens } from './prompt-bound';
import { PromptEstimate } from './prompt-estimate';

const SEED = 20_261_124;
const MODEL = bodyRules({ contextTokens: 1_000_000, maxTokensPerAudio: 40 });
const EMBEDDING = bodyRules({ kind: 'embedding' });
const request = (body: object) =>
  readRequest('chat', Buffer.from(JSON.stringify({ model: 'm', ...body })), () => MODEL);

describe('the bound of a prompt', () => {
  it('is never below the exact count', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.lorem(),
      fc.constantFrom('<|endoftext|>', '\u0000\u0001', '😀😀', '\n\n\n'),
    );
    const part = fc.oneof(
      text.map((value) => ({ type: 'text', text: value })),
      fc.constant({ type: 'image_url', image_url: { url: 'data:,' } }),
    );
    const anyMessage = fc.record(
      {
        role: fc.constantFrom('user', 'system', 'tool', 'assistant'),
        content: fc.oneof(text, fc.array(part, { minLength: 1 })),
        name: text,
        tool_call_id: text,
      },
      { requiredKeys: ['role', 'content'] },
    );
    const message = anyMessage.map((fields) =>
      fields.role === 'tool' ? { tool_call_id: 'call_1', ...fields } : fields,
    );
    await assertRuns(
      fc.property(
        fc.array(message, { minLength: 1, maxLength: 8 }),
        fc.array(
          fc.record({
            type: fc.constant('function'),
            function: fc.record({
              name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/),
              description: text,
              parameters: fc.dictionary(fc.string(), fc.jsonValue()),
            }),
          }),
        ),
        (messages, tools) => {
          const asked = request({ messages, tools });
          expect(cheapBound(asked, MODEL)).toBeGreaterThanOrEqual(countPrompt(asked, MODEL).total);
        },
      ),
      { seed: SEED, leastRuns: 200 },
    );
  });

  it('counts a plain chat by the documented formula', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello there', name: 'Ann' },
    ];
    const words = ['system', 'Be brief.', 'user', 'Hello there', 'Ann'].reduce(
      (sum, text) => sum + countTokens('o200k_base', text),
      0,
    );
    expect(countPrompt(request({ messages }), MODEL)).toEqual({
      total: words + 2 * 3 + 1 + 3,
      longest: words + 2 * 3 + 1 + 3,
      least: words + 2 * 3 + 1 + 3,
      most: words + 2 * 3 + 1 + 3,
    });
  });

  it('has nothing of what is not sent: the bound, the count and the estimate are those without it', () => {
    const prose = 'This is the text of an answer that was given before. '.repeat(20);
    const asked = (inMessage: object, inCall: object, inToolCall: object = {}) => {
      const called = { name: 'f', arguments: '{}', ...inCall };
      const calls = [{ function: called, ...inToolCall }];
      const call = { role: 'assistant', content: 'It is done.', tool_calls: calls, ...inMessage };
      return request({ messages: [{ role: 'assistant', content: 'It was.', ...inMessage }, call] });
    };
    const sizes = (of: ReturnType<typeof request>) => {
      const { likely } = PromptEstimate.toHold(of, MODEL, 1);
      return { bound: cheapBound(of, MODEL), likely, counted: countPrompt(of, MODEL), sent: of.outgoing };
    };
    const bare = sizes(asked({}, {}));
    expect(sizes(asked({}, { parsed_arguments: { a: prose, b: 1e20 } }))).toEqual(bare);
    expect(sizes(asked({}, { description: prose }, { extra_content: { a: prose } }))).toEqual(bare);
    expect(sizes(asked({ parsed: { a: prose }, thinking: prose }, {}))).toEqual(bare);
    const plain = (more: object) => sizes(request({ messages: [{ role: 'user', content: prose, ...more }] }));
    expect(plain({}).likely).not.toBeNull();
    expect(plain({ thinking: prose })).toEqual(plain({}));
  });

  it('counts the longest input for the context, and all inputs for the price', () => {
    const embed = readRequest(
      'embedding',
      Buffer.from('{"model":"m","input":["one two three","four"]}'),
      () => EMBEDDING,
    );
    // Two special tokens for each input.
    expect(countPrompt(embed, MODEL)).toEqual({ total: 4, longest: 3, least: 4, most: 8 });
    const tokens = readRequest('embedding', Buffer.from('{"model":"m","input":[[1,2,3],[4]]}'), () => EMBEDDING);
    expect(countPrompt(tokens, MODEL)).toEqual({ total: 4, longest: 3, least: 4, most: 8 });
  });
});

describe('a template that indents tools', () => {
  const toolsOf = (...schemas: unknown[]) =>
    schemas.map((schema, i) => ({
      type: 'function',
      function: { name: `f${i}`, description: 'Look it up.', parameters: { properties: { x: schema } } },
    }));
  const asked = (tools?: object[]) => request({ messages: [{ role: 'user', content: 'Look it up.' }], tools });
  /** The prompt as that template makes it: each tool indented, with two newlines after it. */
  const rendered = (tools: object[]) =>
    countTokens('o200k_base', tools.map((tool) => `${JSON.stringify(tool, null, 4)}\n\n`).join(''));
  const NESTED = Array.from({ length: 700 }, () => [1]);
  const deep = (levels: number) =>
    Array.from({ length: levels }).reduce((inner: unknown) => [inner], Array<number>(700).fill(1));

  it.each<[string, object[]]>([
    ['ordinary tools', toolsOf({ type: 'string', description: 'The name of a city.' }, { enum: ['a', 'b'] })],
    ['many lists', toolsOf({ enum: NESTED })],
    ['many lists in a deep schema', toolsOf({ enum: deep(40) })],
  ])('is within what is held: %s', (_, tools) => {
    const ask = asked(tools);
    const { total, longest, most } = countPrompt(ask, MODEL);
    expect(longest).toBe(total);
    expect(total).toBe(countTokens('o200k_base', JSON.stringify(tools)) + countPrompt(asked(), MODEL).total);
    expect(most).toBeGreaterThanOrEqual(rendered(tools) + countPrompt(asked(), MODEL).total);
    expect(cheapBound(ask, MODEL)).toBeGreaterThanOrEqual(most);
    const { exactCount, upperBound } = PromptEstimate.toHold(ask, MODEL, 1).counted();
    expect({ exactCount, upperBound }).toEqual({ exactCount: total, upperBound: most });
  });

  it('adds to the hold of ordinary tools what it adds to them', () => {
    const tools = toolsOf({ type: 'string', description: 'The name of a city.' }, { enum: ['a', 'b'] });
    const { total, most } = countPrompt(asked(tools), MODEL);
    expect(most - total).toBeLessThan(1.2 * countTokens('o200k_base', JSON.stringify(tools)) + 48);
    // Without anything that can be indented there is nothing to add.
    const { total: plain, most: same } = countPrompt(asked(), MODEL);
    expect(same).toBe(plain);
  });

  it('makes the prompt no longer than the context, and refuses nothing that fits in compact form', () => {
    const tools = toolsOf({ enum: NESTED });
    const ask = asked(tools);
    const total = countPrompt(asked(tools), MODEL).total;
    const tight = { ...MODEL, contextTokens: total + 100 };
    expect(PromptEstimate.toHold(ask, tight, 1)).toMatchObject({ exactCount: total, longest: total });
    const { most } = countPrompt(ask, tight);
    expect(most).toBeGreaterThanOrEqual(tight.contextTokens);
    expect(most).toBeLessThan(tight.contextTokens + 100);
  });

  it('does not make counting long: beyond a multiple of the body, its bytes are the bound', () => {
    const ask = asked(toolsOf({ enum: deep(50) }));
    const { bytes, indentedBytes } = ask.outgoing;
    expect(indentedBytes).toBeGreaterThan(50 * bytes);
    expect(bytesToCount(ask)).toBe(bytes);
    expect(countPrompt(ask, MODEL).most).toBeGreaterThan(indentedBytes);
    const ordinary = asked(toolsOf({ type: 'string' }));
    expect(bytesToCount(ordinary)).toBe(ordinary.outgoing.bytes + ordinary.outgoing.indentedBytes);
  });

  it('may indent passed-on fields too, in each prompt of a completion', () => {
    const documents = NESTED;
    const rules = bodyRules({ passthrough: new Set(['documents']) });
    const read = (body: object) =>
      readRequest('completion', Buffer.from(JSON.stringify({ model: 'm', ...body })), () => rules);
    const { total, most } = countPrompt(read({ prompt: ['a', 'b'], documents }), rules);
    const [compact, layout] = [JSON.stringify(documents), JSON.stringify(documents, null, 4)].map((text) =>
      countTokens('o200k_base', text),
    );
    expect(total).toBe(2 + 2 * compact!);
    expect(most).toBe(2 + 2 * layout! + 2 * 2);
  });
});

describe('a video or a file', () => {
  const VIDEO = { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } };
  const FILE = { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'x.pdf' } };
  const rules = bodyRules({ maxTokensPerVideo: 3_000, maxTokensPerFile: 50 });
  const chat = (...content: object[]) => {
    const body = { model: 'm', messages: [{ role: 'user', content }] };
    return readRequest('chat', Buffer.from(JSON.stringify(body)), () => rules);
  };

  it('is held at the maximum of the model', () => {
    const held = chat(VIDEO, VIDEO, FILE);
    expect(mediaTokens(held, rules)).toBe(6_050);
    expect(cheapBound(held, rules)).toBeGreaterThan(6_050);
  });

  it('costs nothing for its bytes, but its name is text', () => {
    const large = { ...VIDEO, video_url: { url: `data:video/mp4;base64,${'A'.repeat(400_000)}` } };
    expect(cheapBound(chat(large), rules)).toBe(cheapBound(chat(VIDEO), rules));
    // A backend may show the name of a file to the model.
    const named = { ...FILE, file: { ...FILE.file, filename: 'word '.repeat(40) } };
    const words = countPrompt(chat(named), rules).total - countPrompt(chat(FILE), rules).total;
    expect(words).toBeGreaterThan(30);
  });
});

describe('counting', () => {
  it.each(['a'.repeat(200_000), ' '.repeat(200_000), '('.repeat(200_000), 'ж'.repeat(100_000)])(
    'does not take quadratic time (case %#)',
    (text) => {
      const before = process.cpuUsage();
      expect(countTokens('o200k_base', text)).toBeGreaterThan(1_000);
      const { user, system } = process.cpuUsage(before);
      // Merged as one piece, the first case takes 20 s.
      expect((user + system) / 1_000).toBeLessThan(2_000);
    },
  );

  it('stops at its limit', () => {
    expect(countWithin('o200k_base', 'word '.repeat(100), 10)).toBe(Infinity);
    expect(countWithin('o200k_base', 'one two', 2)).toBe(2);
    expect(countWithin('o200k_base', 'one two', 1)).toBe(Infinity);
    expect(countWithin('o200k_base', '', 0)).toBe(0);
  });

  it('counts special tokens in a text as text', () => {
    expect(countTokens('o200k_base', '<|endoftext|>')).toBeGreaterThan(1);
  });
});

describe('a prompt of token ids', () => {
  const completion = (prompt: unknown, contextTokens: number) => {
    const model = bodyRules({ contextTokens });
    const body = Buffer.from(JSON.stringify({ model: 'm', prompt }));
    return PromptEstimate.toHold(
      readRequest('completion', body, () => model),
      model,
      16,
    );
  };
  const ids = (count: number) => Array.from({ length: count }, (_, i) => i % 50_000);

  it('may be as long as the context of its model, and not longer', () => {
    expect(completion(ids(140_000), 200_000).upperBound).toBeGreaterThanOrEqual(140_000);
    expect(() => completion(ids(140_000), 131_072)).toThrow(
      expect.objectContaining({ code: 'context_length_exceeded' }),
    );
    expect(completion(ids(999_000), 1_000_000).upperBound).toBeGreaterThanOrEqual(999_000);
  });

  it('is one of at most 2,048, as are texts', () => {
    const refusal = expect.objectContaining({
      code: 'invalid_value',
      message: "'prompt' must have at most 2048 items.",
    });
    for (const item of ['x', [1]]) {
      expect(
        completion(
          Array.from({ length: 2_048 }, () => item),
          200_000,
        ).upperBound,
      ).toBeGreaterThan(0);
      for (const length of [2_049, 140_000])
        expect(() =>
          completion(
            Array.from({ length }, () => item),
            200_000,
          ),
        ).toThrow(refusal as Error);
    }
  });
});
