import { outputOf } from './output-text';

const NOTHING = { text: '', least: 0 };

describe('the output of a choice', () => {
  it.each<[string, object]>([
    ['a role', { delta: { role: 'assistant', content: '' } }],
    ['nothing', { delta: {} }],
    ['an end', { delta: {}, finish_reason: 'tool_calls', stop_reason: null, logprobs: null }],
    ['an end of a legacy completion', { text: '', finish_reason: 'length', stop_reason: 128_009, matched_stop: 7 }],
    ['all that engines leave empty', { delta: { content: null, reasoning: null, tool_calls: [], annotations: [] } }],
    ['a filter’s verdict', { delta: {}, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }],
    ['a call’s place', { delta: { tool_calls: [{ index: 0, type: 'function', function: { arguments: '' } }] } }],
    ['a message’s frame', { message: { role: 'assistant', content: null, refusal: null, audio: null } }],
  ])('is nothing where nothing is delivered: %s', (_, choice) => {
    expect(outputOf({ index: 0, finish_reason: null, ...choice })).toEqual(NOTHING);
  });

  it.each<[string, object, string]>([
    ['content', { delta: { role: 'assistant', content: 'abc' } }, 'abc'],
    ['parts', { delta: { content: [{ type: 'text', text: 'a' }, 'b', { type: 'refusal', refusal: 'c' }] } }, 'abc'],
    ['reasoning', { delta: { reasoning: 'a', reasoning_content: 'b', reasoning_text: 'c' } }, 'abc'],
    ['details', { delta: { reasoning_details: [{ type: 'reasoning.text', id: 'x', index: 0, text: 'abc' }] } }, 'abc'],
    ['thinking', { delta: { thinking_blocks: [{ type: 'thinking', thinking: 'abc', signature: 'U2ln' }] } }, 'abc'],
    ['sound', { delta: { audio: { id: 'audio_1', data: 'ab', transcript: 'c', expires_at: 5 } } }, 'abc'],
    [
      'a call',
      {
        delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'a', arguments: 'bc' } }] },
      },
      'abc',
    ],
    ['a custom call', { delta: { tool_calls: [{ type: 'custom', custom: { name: 'a', input: 'bc' } }] } }, 'abc'],
    ['arguments as an object', { delta: { tool_calls: [{ function: { arguments: { city: 'abc' } } }] } }, 'abc'],
    ['a legacy call', { message: { function_call: { name: 'a', arguments: 'bc' } } }, 'abc'],
    ['legacy text', { text: 'abc' }, 'abc'],
    ['all of delta, message and text', { delta: { content: 'a' }, message: { content: 'b' }, text: 'c' }, 'abc'],
    ['a delta that is no object', { delta: 'abc' }, 'abc'],
    ['what nobody knows', { delta: { x: [{ y: { z: 'abc' } }] } }, 'abc'],
    ['beside the delta', { delta: {}, x: 'abc' }, 'abc'],
    ['a name that is text', { delta: { 'a b': 1 } }, 'a b'],
    ['a role that is none', { delta: { role: 'abc' } }, 'abc'],
    ['an end that is text', { delta: {}, finish_reason: 'a b c' }, 'a b c'],
    ['a verdict that is text', { delta: {}, content_filter_results: { hate: 'a b c' } }, 'a b c'],
    ['an id that is text', { delta: { tool_calls: [{ id: 'a b' }] } }, 'a b'],
  ])('has all text, and a token at the least: %s', (_, choice, text) => {
    expect(outputOf({ index: 0, ...choice } as Record<string, unknown>)).toEqual({ text, least: 1 });
  });

  it('counts what is no text by its number', () => {
    const entry = { token: 'a', bytes: [97], logprob: -0.5, top_logprobs: [{ token: 'b', logprob: -1 }] };
    expect(outputOf({ delta: {}, logprobs: { content: [entry, entry] } })).toEqual({ text: '', least: 2 });
    expect(outputOf({ text: 'ab', logprobs: { tokens: ['a', 'b', 'c'] } })).toEqual({ text: 'ab', least: 3 });
    expect(outputOf({ delta: {}, token_ids: [1, 2, 3] })).toEqual({ text: '', least: 3 });
    expect(outputOf({ delta: { x: [1, 2, 3, 4] } })).toEqual({ text: '', least: 4 });
    expect(outputOf({ delta: { tool_calls: [{ id: 'call_1' }] } })).toEqual({ text: '', least: 1 });
    const long = { ...entry, token: 'x'.repeat(200) };
    expect(outputOf({ delta: {}, logprobs: { content: [long] } })).toEqual({ text: long.token, least: 1 });
  });

  it('is read whole, however deep it is', () => {
    let deep: unknown = 'abc';
    for (let i = 0; i < 100_000; i += 1) deep = [deep];
    expect(outputOf({ delta: { x: deep } })).toEqual({ text: 'abc', least: 1 });
  });
});
