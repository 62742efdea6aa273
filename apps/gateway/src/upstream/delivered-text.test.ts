import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { countTokens } from '../prompt/tokenizer';
import { fromWire, toStringBody } from './json-text';
import { DeliveredText } from './delivered-text';

const SEED = 20_261_124;
const count = (text: string) => countTokens('o200k_base', text);
const piece = (text: string, choice = 0) => ({ choice, text: toStringBody(text), least: 1 });
const textOf = (body: string) => fromWire(`"${body}"`) as string;
const CHINESE = '昨天我们去了北京的国家大剧院，观看了一场新芭蕾舞剧。';
const anyText = fc.oneof(
  fc.array(fc.constantFrom('word', ' the', ' a b', '\n', '  x', '"', '\\', '😀', 'é', '1234', CHINESE), {
    minLength: 1,
    maxLength: 30,
  }),
  fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 10 }),
);

describe('the text that a stream delivered', () => {
  it('is cut to fit: never above the limit, and at most four tokens below it', async () => {
    await assertRuns(
      fc.property(anyText, anyText, fc.nat(40), (before, after, room) => {
        const delivered = new DeliveredText(count);
        for (const text of before) delivered.add(piece(text));
        const limit = delivered.tokens() + room;
        const next = piece(after.join(''));
        const fits = textOf(delivered.fitting([], next, limit));
        expect(after.join('').startsWith(fits)).toBe(true);
        delivered.add(piece(fits));
        if (fits !== '') expect(delivered.tokens()).toBeLessThanOrEqual(limit);
        const short = limit - count(before.join('') + fits);
        if (fits !== after.join('') && before.length + 1 <= limit) expect(short).toBeLessThanOrEqual(4);
      }),
      { seed: SEED, leastRuns: 100, timeBoxMs: 3_000 },
    );
  });

  it('is cut in time proportional to the text that fits, not to the text sent', () => {
    let counted = 0;
    const delivered = new DeliveredText((text) => {
      counted += text.length;
      return count(text);
    });
    const endless = piece('many words '.repeat(500_000));
    const limit = 1_000;
    expect(delivered.tokensWith([endless], limit)).toBeGreaterThan(limit);
    const fits = textOf(delivered.fitting([], endless, limit));
    expect(count(fits)).toBe(limit);
    expect(counted).toBeLessThan(200_000);
  });

  it('is not counted above the tokenizer’s count at the limit, even without blanks', () => {
    const delivered = new DeliveredText(count);
    const text = CHINESE.repeat(400);
    const limit = count(text);
    for (const part of text.match(/.{1,3}/gsu)!) {
      expect(delivered.tokensWith([piece(part)], limit)).toBeLessThanOrEqual(limit);
      delivered.add(piece(part));
      delivered.tokensWith([]);
    }
  });

  it('has at least one token per chunk, choice by choice', () => {
    const delivered = new DeliveredText(count);
    for (const letter of 'internationalization') delivered.add(piece(letter));
    expect([delivered.leastTokens(), delivered.tokens()]).toEqual([20, 20]);
    delivered.add(piece(' word'.repeat(10), 1));
    expect(delivered.tokens()).toBe(30);
    expect(delivered.tokensWith([piece(' word', 1)])).toBe(31);
    expect(delivered.estimate()).toBeNull();
    delivered.add(piece(' and this is what there was of it'));
    expect(delivered.estimate()).toBeNull();
    const prose = new DeliveredText(count);
    prose.add(piece('and this is what there was of it'));
    expect(prose.estimate()).toBeCloseTo(8, -1);
  });

  it('has a lower bound that never falls and never exceeds the count', async () => {
    await assertRuns(
      fc.property(fc.array(fc.tuple(anyText, fc.boolean()), { maxLength: 8 }), (steps) => {
        const delivered = new DeliveredText(count);
        let last = 0;
        for (const [texts, counts] of steps) {
          for (const text of texts) delivered.add(piece(text));
          if (counts) delivered.tokens();
          const least = delivered.leastTokens();
          expect(least).toBeGreaterThanOrEqual(last);
          last = least;
        }
        expect(last).toBeLessThanOrEqual(delivered.tokens());
      }),
      { seed: SEED, leastRuns: 100, timeBoxMs: 2_000 },
    );
  });
});
