import { outputOf, withoutEmptyUnknown } from './output-text';

/** The text and the least number of tokens. */
const of = (choice: object) => {
  const { text, least } = outputOf(choice as Record<string, unknown>);
  return { text, least };
};
const NOTHING = { text: '', least: 0 };
const WORD = 'w'.repeat(62);
const many = (n: number, one: object | number | boolean | null | string) => Array.from({ length: n }, () => one);

describe('the output of a choice', () => {
  it.each<[string, object]>([
    ['a role', { delta: { role: 'assistant', content: '' } }],
    ['nothing', { delta: {} }],
    ['a finish reason', { delta: {}, finish_reason: 'tool_calls', stop_reason: null, logprobs: null }],
    [
      'the finish reason of a legacy completion',
      { text: '', finish_reason: 'length', stop_reason: 128_009, matched_stop: 7 },
    ],
    [
      'all members that engines leave empty',
      { delta: { content: null, reasoning: null, tool_calls: [], annotations: [] } },
    ],
    ['a filter’s verdict', { delta: {}, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }],
    ['a tool call’s index', { delta: { tool_calls: [{ index: 0, type: 'function', function: { arguments: '' } }] } }],
    [
      'all filters’ verdicts',
      {
        delta: {},
        content_filter_offsets: { check_offset: 44, start_offset: 44, end_offset: 198 },
        content_filter_results: {
          hate: { filtered: false, severity: 'safe' },
          self_harm: { filtered: false, severity: 'low' },
          sexual: { filtered: false, severity: 'safe' },
          violence: { filtered: false, severity: 'safe' },
          jailbreak: { filtered: false, detected: false },
          profanity: { filtered: false, detected: false },
          protected_material_text: { filtered: false, detected: false },
          protected_material_code: { filtered: false, detected: false },
          indirect_attack: { filtered: false, detected: false },
          ungrounded_material: { filtered: false, detected: false },
          custom_topics: { filtered: false, details: [] },
        },
      },
    ],
    [
      'a role beside empty members',
      { delta: { role: 'assistant', content: '', refusal: null, reasoning_content: null } },
    ],
    [
      'a finish reason beside empty members',
      { delta: {}, finish_reason: 'stop', stop_reason: 'END', matched_stop: null, token_ids: null },
    ],
    ['empty verdicts', { delta: {}, logprobs: { content: [], refusal: null }, content_filter_results: {} }],
    ['a message without content', { message: { role: 'assistant', content: null, refusal: null, audio: null } }],
  ])('is empty for %s', (_, choice) => {
    expect(of({ index: 0, finish_reason: null, ...choice })).toEqual(NOTHING);
  });

  it.each<[string, object, string]>([
    ['content', { delta: { role: 'assistant', content: 'abc' } }, 'abc'],
    ['parts', { delta: { content: [{ type: 'text', text: 'a' }, 'b', { type: 'refusal', refusal: 'c' }] } }, 'abc'],
    ['reasoning', { delta: { reasoning: 'a', reasoning_content: 'b', reasoning_text: 'c' } }, 'abc'],
    ['a copy of the reasoning once', { delta: { reasoning: 'abc', reasoning_content: 'abc' } }, 'abc'],
    [
      'other copies',
      { delta: { reasoning: 'a', reasoning_text: 'a' }, reasoning: 'b', reasoning_content: 'b' },
      'aabb',
    ],
    [
      'reasoning details',
      { delta: { reasoning_details: [{ type: 'reasoning.text', id: 'x', index: 0, text: 'abc' }] } },
      'abc',
    ],
    ['thinking', { delta: { thinking_blocks: [{ type: 'thinking', thinking: 'abc', signature: 'U2ln' }] } }, 'abcU2ln'],
    ['audio', { delta: { audio: { id: 'audio_1', data: 'ab', transcript: 'c', expires_at: 5 } } }, 'abc'],
    [
      'a tool call',
      {
        delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'a', arguments: 'bc' } }] },
      },
      'abc',
    ],
    ['a custom tool call', { delta: { tool_calls: [{ type: 'custom', custom: { name: 'a', input: 'bc' } }] } }, 'abc'],
    ['arguments as an object', { delta: { tool_calls: [{ function: { arguments: { city: 'abc' } } }] } }, 'cityabc'],
    ['a function call', { message: { function_call: { name: 'a', arguments: 'bc' } } }, 'abc'],
    ['legacy text', { text: 'abc' }, 'abc'],
    ['reasoning with its channel', { delta: { channel: 'analysis', reasoning: 'abc' } }, 'abc'],
    ['a channel that is text', { delta: { channel: 'a b' } }, 'a b'],
    ['a copy of the content once', { text: 'abc', delta: { token_id: 30, role: 'assistant', content: 'abc' } }, 'abc'],
    ['a text that is no copy', { text: 'ab', delta: { content: 'abc' } }, 'ababc'],
    ['the id of a token', { text: '', delta: { token_id: 30, content: '' } }, ''],
    ['an id of a token that is text', { delta: { token_id: '30' } }, 'token_id30'],
    ['all of delta, message and text', { delta: { content: 'a' }, message: { content: 'b' }, text: 'c' }, 'abc'],
    ['a delta that is not an object', { delta: 'abc' }, 'abc'],
    ['unknown members', { delta: { x: [{ y: { z: 'abc' } }] } }, 'xyzabc'],
    ['a member beside the delta', { delta: {}, x: 'abc' }, 'xabc'],
    ['a member name with text', { delta: { 'a b': 1 } }, 'a b1'],
    ...[null, true, false, '', [], {}].map((value): [string, object, string] => [
      `a member name with text, of ${JSON.stringify(value)}`,
      { delta: { 'a b': value } },
      'a b',
    ]),
    ['a member name in a verdict', { delta: {}, content_filter_results: { 'a b': null } }, 'a b'],
    ['strings as a verdict', { delta: {}, content_filter_results: ['a', 'b'] }, 'ab'],
    ['strings as a finish reason', { delta: {}, finish_reason: ['a', 'b'] }, 'ab'],
    ['a member name in a tool call', { delta: { tool_calls: [{ abc: null }] } }, 'abc'],
    ['an unknown role', { delta: { role: 'abc' } }, 'abc'],
    ['a finish reason that is text', { delta: {}, finish_reason: 'a b c' }, 'a b c'],
    ['a verdict that is text', { delta: {}, content_filter_results: { hate: 'a b c' } }, 'a b c'],
    ['an id that is text', { delta: { tool_calls: [{ id: 'a b' }] } }, 'a b'],
  ])('has all text and at least one token: %s', (_, choice, text) => {
    expect(of({ index: 0, ...choice })).toEqual({ text, least: 1 });
  });

  it('counts numbers, ids and logprobs as tokens', () => {
    const entry = { token: 'a', bytes: [97], logprob: -0.5, top_logprobs: [{ token: 'b', logprob: -1 }] };
    expect(of({ delta: {}, logprobs: { content: [entry, entry] } })).toEqual({ text: '', least: 2 });
    expect(of({ text: 'ab', logprobs: { tokens: ['a', 'b', 'c'] } })).toEqual({ text: 'ab', least: 3 });
    expect(of({ delta: {}, token_ids: [1, 2, 3] })).toEqual({ text: '', least: 3 });
    expect(of({ delta: { x: [1, 2, 3, 4] } })).toEqual({ text: 'x1234', least: 4 });
    expect(of({ delta: {}, stop_reason: [1, 2, 3] })).toEqual({ text: '123', least: 3 });
    expect(of({ delta: { tool_calls: [{ id: 'call_1' }] } })).toEqual({ text: '', least: 1 });
    const long = { ...entry, token: 'x'.repeat(200) };
    expect(of({ delta: {}, logprobs: { content: [long] } })).toEqual({ text: long.token, least: 1 });
  });

  it.each<[number, object]>([
    [0, { delta: { content: 'a' } }],
    [2, { message: { tool_calls: [{ function: { name: 'a', arguments: '{}' } }, { custom: { name: 'b' } }] } }],
    [1, { delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'a', arguments: '' } }] } }],
    [0, { delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }, { function: { name: '' } }, null, 1] } }],
    [1, { message: { function_call: { name: 'a', arguments: '{}' } } }],
    [0, { delta: { tool_calls: 'a', function_call: 'b' }, tool_calls: [{ function: { name: 'a' } }] }],
  ])('has %i tool calls that begin: %j', (calls, choice) => {
    expect(outputOf({ index: 0, ...choice }).calls).toBe(calls);
  });

  it('says whether a part of it is reasoning', () => {
    const reasons = (delta: object) => outputOf({ index: 0, delta }).reasons;
    for (const name of ['reasoning', 'reasoning_content', 'reasoning_text', 'thinking'])
      expect([reasons({ [name]: 'a' }), reasons({ [name]: '', content: 'a' })]).toEqual([true, false]);
    expect(reasons({ reasoning_details: [{ type: 'reasoning.summary', summary: 'a' }] })).toBe(true);
    expect(reasons({ thinking_blocks: [{ type: 'thinking', thinking: 'a' }] })).toBe(true);
  });

  it('includes text at any depth', () => {
    let deep: unknown = 'abc';
    for (let i = 0; i < 100_000; i += 1) deep = [deep];
    expect(of({ delta: { x: deep } })).toEqual({ text: 'xabc', least: 1 });
  });

  it.each<[string, object, number]>([
    ['members of one kind', { delta: { tool_calls: many(100, { type: 'function' }) } }, 17],
    ['ids', { delta: { tool_calls: many(100, { id: WORD }) } }, 100],
    [
      'statuses',
      {
        delta: {},
        content_filter_results: Object.fromEntries(many(1, '').map(() => ['hate', many(40, { status: WORD })])),
      },
      36,
    ],
    ['nulls', { delta: { tool_calls: many(1_000, null) } }, 117],
    [
      'alternatives',
      { delta: {}, logprobs: { content: [{ token: 'a', top_logprobs: many(300, { token: 'x'.repeat(110) }) }] } },
      64,
    ],
    [
      'names of tokens',
      {
        text: '',
        logprobs: { top_logprobs: [Object.fromEntries(many(300, 0).map((_, i) => [`${'x'.repeat(100)}${i}`, null]))] },
      },
      59,
    ],
    ['bytes', { delta: {}, logprobs: { bytes: many(1_024, 97) } }, 2],
    ['strings in no list', { delta: {}, logprobs: { x: many(1_024, 'abcd') } }, 8],
  ])('counts structure as tokens above the free limit: %s', (_, choice, least) => {
    expect(outputOf(choice as Record<string, unknown>).least).toBeGreaterThanOrEqual(least);
  });

  it('loses empty members with unknown names, and nothing else', () => {
    const lean = { index: 0, delta: { content: null, x: 1 }, finish_reason: null };
    const full = { ...lean, x: {}, y: false, delta: { ...lean.delta, a: null, b: '', c: [] } };
    expect(withoutEmptyUnknown(full)).toEqual(lean);
    expect(withoutEmptyUnknown(lean)).toBe(lean);
  });
});
