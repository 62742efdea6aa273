import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { cheapBound, countPrompt } from './prompt-bound';
import { PromptEstimate } from './prompt-estimate';
import { countTokens } from './tokenizer';

const SEED = 20_261_124;
const MODEL = bodyRules({ contextTokens: 1_000_000 });
const request = (body: object) =>
  readRequest('chat', Buffer.from(JSON.stringify({ model: 'm', ...body })), () => MODEL);

describe('a template that joins the parts of a message with newlines', () => {
  const tokens = (text: string) => countTokens('o200k_base', text);
  const parts = (texts: readonly string[]) => texts.map((text) => ({ type: 'text', text }));
  const asked = (content: unknown, more: object = {}) => request({ messages: [{ role: 'user', content, ...more }] });
  const LETTERS = Array.from({ length: 3_000 }, () => 'a');

  it('is within what is held and believed, and is not charged by our own count', () => {
    const ask = asked(parts(LETTERS));
    const apart = LETTERS.length + countPrompt(asked(''), MODEL).total;
    expect(countPrompt(ask, MODEL)).toEqual({
      ...{ total: apart, longest: apart, least: apart },
      most: apart + LETTERS.length - 1,
    });
    expect(tokens(LETTERS.join('\n'))).toBe(2 * LETTERS.length - 1);
    expect(cheapBound(ask, MODEL)).toBeGreaterThan(apart + LETTERS.length);
    const counted = PromptEstimate.toHold(ask, MODEL, 1).counted();
    expect(counted).toMatchObject({ exactCount: apart, upperBound: apart + LETTERS.length - 1 });
    expect(counted.likely).toEqual({ least: apart, most: apart + LETTERS.length - 1 });
  });

  it('is within the range of belief without a count', () => {
    const prose = Array.from({ length: 9 }, () => 'This is what there was of it.');
    const whole = PromptEstimate.toHold(asked(prose.join('')), MODEL, 1).likely!;
    const { least, most } = PromptEstimate.toHold(asked(parts(prose)), MODEL, 1).likely!;
    // After a full stop, the newline may take another token.
    expect([whole.most - whole.least, most - least]).toEqual([0, 2 * 8]);
  });

  it('leaves room for it in the context, and is no longer than the context', () => {
    const ask = asked(parts(LETTERS));
    const { total } = countPrompt(ask, MODEL);
    const room = (contextTokens: number, of: typeof ask) =>
      PromptEstimate.toHold(of, { ...MODEL, contextTokens }, contextTokens).roomFor(contextTokens);
    expect(room(20_000, asked('a '.repeat(total - 10))) - room(20_000, ask)).toBeGreaterThan(LETTERS.length - 50);
    expect(countPrompt(ask, { ...MODEL, contextTokens: total + 100 }).most).toBe(total + 100);
  });

  it('adds a joint for a part without text, and escapes to the result of a tool', () => {
    const image = { type: 'image_url', image_url: { url: 'data:,' } };
    const { total, most } = countPrompt(asked([...parts(['a', '']), image]), MODEL);
    expect(most - total).toBe(1 + 2);
    const result = asked(parts(LETTERS), { role: 'tool', tool_call_id: 'c' });
    const { total: apart, most: joined } = countPrompt(result, MODEL);
    expect(joined).toBeGreaterThanOrEqual(apart - LETTERS.length + tokens(JSON.stringify(LETTERS.join('\n'))));
    expect(cheapBound(result, MODEL)).toBeGreaterThanOrEqual(joined);
  });

  it('has no more tokens than are added for it, for any texts', async () => {
    const words = fc.constantFrom(
      ...['the', ' a', 'Zebra', '12', '漢', 'ж', '', ' ', '  ', '\n', '\r', '\t'],
      ...'.)"{=/</?😀;-#',
    );
    const texts = fc.array(
      fc.array(words, { maxLength: 6 }).map((some) => some.join('')),
      { minLength: 1, maxLength: 8 },
    );
    await assertRuns(
      fc.property(texts, (some) => {
        const ask = asked(parts(some));
        const { total, most } = countPrompt(ask, MODEL);
        const apart = some.reduce((sum, text) => sum + tokens(text), 0);
        expect(most).toBeGreaterThanOrEqual(total - apart + tokens(some.join('\n')));
        expect(cheapBound(ask, MODEL)).toBeGreaterThanOrEqual(most);
      }),
      { seed: SEED, leastRuns: 200 },
    );
  });
});
