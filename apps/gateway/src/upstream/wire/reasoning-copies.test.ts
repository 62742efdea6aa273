import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { outputOf } from './output-text';
import { copiesIn, withCopies } from './reasoning-copies';

const SEED = 20_261_129;
const of = (delta: object) => {
  const { text, least } = outputOf({ index: 0, delta });
  return { text, least };
};
const details = (...texts: string[]) => texts.map((text, index) => ({ type: 'reasoning.text', text, index }));
const thinking = (...texts: string[]) => texts.map((text) => ({ type: 'thinking', thinking: text }));

describe('reasoning under several names', () => {
  it.each<[string, object]>([
    ['vLLM', { reasoning: 'abc', reasoning_content: 'abc' }],
    ['OpenRouter', { content: '', reasoning: 'abc', reasoning_details: details('abc') }],
    ['OpenRouter, of several parts', { reasoning: 'abc', reasoning_details: details('a', '', 'bc') }],
    [
      'OpenRouter, of a summary',
      { reasoning: 'abc', reasoning_details: [{ type: 'reasoning.summary', summary: 'abc' }] },
    ],
    [
      'LiteLLM',
      {
        provider_specific_fields: { reasoning_content: 'abc', thinking_blocks: thinking('abc') },
        thinking_blocks: thinking('ab', 'c'),
        reasoning_content: 'abc',
      },
    ],
    ['lists alone', { reasoning_details: details('abc'), thinking_blocks: thinking('abc') }],
    ['the proxy’s own members alone', { provider_specific_fields: { reasoning: 'abc', reasoning_content: 'abc' } }],
  ])('counts once if it is the same: %s', (_, delta) => {
    expect(of(delta)).toEqual({ text: 'abc', least: 1 });
  });

  it.each<[string, object, string]>([
    ['one is longer', { reasoning: 'ab', reasoning_details: details('ab', 'c') }, 'ababc'],
    ['one is the start of the other', { reasoning_content: 'abc', thinking_blocks: thinking('ab') }, 'abcab'],
    ['the parts are in another order', { reasoning: 'abc', reasoning_details: details('bc', 'a') }, 'abcbca'],
    ['a part is no entry', { reasoning: 'abc', reasoning_details: ['abc'] }, 'abcabc'],
    ['a part is no text', { reasoning: 'abc', reasoning_details: [{ text: ['abc'] }] }, 'abcabc'],
    ['it is deeper', { reasoning: 'abc', reasoning_details: [{ x: { text: 'abc' } }] }, 'abcxabc'],
    ['the list is none', { reasoning: 'abc', reasoning_details: { text: 'abc' } }, 'abcabc'],
    ['the entry has more', { reasoning: 'abc', reasoning_details: [{ text: 'abc', data: 'def' }] }, 'abcdef'],
    ['the list has more', { reasoning: 'abc', reasoning_details: [{ text: 'abc' }, 'def'] }, 'abcdef'],
    ['a member has no such copy', { reasoning: 'abc', reasoning_text: 'abc', thinking: 'abc' }, 'abcabcabc'],
    ['content is the same', { reasoning: 'abc', content: 'abc' }, 'abcabc'],
    [
      'one of three differs',
      { reasoning: 'abc', reasoning_content: 'abc', thinking_blocks: thinking('abd') },
      'abcabd',
    ],
  ])('counts under each name if %s', (_, delta, text) => {
    expect(of(delta).text).toBe(text);
  });

  it('is no copy beside the message, or between a delta and a message', () => {
    const twice = { reasoning: 'b', reasoning_content: 'b' };
    expect(outputOf({ index: 0, delta: { reasoning: 'a' }, message: { reasoning_content: 'a' }, ...twice }).text).toBe(
      'aabb',
    );
  });

  it('counts the signature and the structure of a copy', () => {
    const signed = [{ type: 'thinking', thinking: 'abc', signature: 'U2ln' }];
    expect(of({ reasoning_content: 'abc', thinking_blocks: signed }).text).toBe('abcU2ln');
    const many = Array.from('x'.repeat(200), (text) => ({ type: 'reasoning.text', text }));
    expect(of({ reasoning: 'x'.repeat(200), reasoning_details: many }).least).toBe(of({ x: many }).least);
  });

  it('counts the same signatures and the same encrypted reasoning once, and others each', () => {
    const signed = (...signatures: string[]) =>
      signatures.map((signature) => ({ type: 'thinking', thinking: '', signature }));
    const hidden = (data: string) => [{ type: 'redacted_thinking', data }];
    const both = (own: object[], again: object[]) =>
      of({ thinking_blocks: own, provider_specific_fields: { thinking_blocks: again } }).text;
    expect(both(signed('U2ln'), signed('U2ln'))).toBe('U2ln');
    expect(both(signed('U2', 'ln'), signed('U2', 'ln'))).toBe('U2ln');
    expect(both([...signed('U2ln'), ...hidden('RGF0')], [...signed('U2ln'), ...hidden('RGF0')])).toBe('U2lnRGF0');
    expect(both(signed('U2ln'), signed('U2lo'))).toBe('U2lnU2lo');
    expect(both(signed('U2ln'), signed('U2ln', 'x'))).toBe('U2lnU2lnx');
    expect(both(hidden('RGF0'), hidden('RGF'))).toBe('RGF0RGF');
    const blocks = () => [{ type: 'thinking', thinking: 'abc', signature: 'U2ln' }];
    const again = { reasoning_content: 'abc', thinking_blocks: blocks() };
    const twice = { ...again, thinking_blocks: blocks(), provider_specific_fields: again };
    expect(of(twice)).toEqual({ text: 'abcU2ln', least: 1 });
  });

  const someText = fc.oneof(fc.constant(''), fc.constantFrom('a', 'b', 'ab', 'ba', 'aa'));
  const parts = fc.array(someText, { maxLength: 3 });
  const chunk = fc.record({
    reasoning: someText,
    reasoning_content: someText,
    details: parts,
    blocks: parts,
    again: someText,
  });

  it('has no text that is uncounted, whatever each chunk of a stream has under each name', async () => {
    await assertRuns(
      fc.property(fc.array(chunk, { minLength: 1, maxLength: 6 }), (chunks) => {
        const under: Record<string, string> = {};
        let counted = 0;
        for (const { reasoning, reasoning_content, details: texts, blocks, again } of chunks) {
          const delta = {
            thinking_blocks: thinking(...blocks),
            reasoning_content,
            provider_specific_fields: { reasoning_content: again },
            reasoning,
            reasoning_details: details(...texts),
          };
          const own = { reasoning, reasoning_content, details: texts.join(''), blocks: blocks.join(''), again };
          const distinct = [...new Set(Object.values(own))].join('');
          expect(of(delta).text).toHaveLength(distinct.length);
          counted += of(delta).text.length;
          for (const [name, text] of Object.entries(own)) under[name] = (under[name] ?? '') + text;
        }
        // Of the stream too: all that any name delivers counts.
        expect(counted).toBeGreaterThanOrEqual(Math.max(...Object.values(under).map(({ length }) => length)));
      }),
      { seed: SEED, leastRuns: 200, timeBoxMs: 2_000 },
    );
  });

  it('is cut under all of its names', async () => {
    await assertRuns(
      fc.property(parts, parts, fc.nat(8), (texts, blocks, at) => {
        const reasoning = texts.join('');
        const former = {
          role: 'assistant',
          reasoning_details: [...details(...texts), null],
          reasoning,
          thinking_blocks: thinking(...blocks),
          provider_specific_fields: { reasoning_content: reasoning, x: 1 },
        };
        const cut = withCopies({ ...former, reasoning: reasoning.slice(0, at) }, former);
        const short = reasoning.slice(0, at);
        expect(cut['reasoning']).toBe(short);
        expect(cut['provider_specific_fields']).toEqual({ reasoning_content: short, x: 1 });
        const entries = cut['reasoning_details'] as ({ text: string } | null)[];
        expect(entries.map((entry) => entry?.text ?? '').join('')).toBe(short);
        expect(entries).toHaveLength(texts.length + 1);
        const own = (cut['thinking_blocks'] as { thinking: string }[]).map((block) => block.thinking).join('');
        expect(own).toBe(blocks.join('') === reasoning ? short : blocks.join(''));
      }),
      { seed: SEED, leastRuns: 200, timeBoxMs: 2_000 },
    );
  });

  it('has no copies if it has one name, or only empty ones', () => {
    const empty = {
      reasoning_content: '',
      reasoning_details: [],
      provider_specific_fields: null,
      thinking_blocks: null,
    };
    expect([copiesIn({}), copiesIn(empty), copiesIn({ ...empty, reasoning: 'abc' })]).toEqual([null, null, null]);
  });
});
