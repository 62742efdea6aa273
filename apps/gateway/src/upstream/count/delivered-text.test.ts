import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { countTokens } from '../../prompt/tokenizer';
import type { Piece } from '../wire/chunk-translator';
import { fromWire, toStringBody } from '../wire/json-text';
import { DeliveredText } from './delivered-text';

const SEED = 20_261_124;
const count = (text: string) => countTokens('o200k_base', text);
const piece = (text: string, choice = 0) => ({ choice, text: toStringBody(text), least: 1 });
const textOf = (body: string) => fromWire(`"${body}"`) as string;
const CHINESE = '昨天我们去了北京的国家大剧院，观看了一场新芭蕾舞剧。';
/** The most that a request can have: 16 for each of 2,048 prompts. */
const MOST_CHOICES = 32_768;
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

  const anyPiece = fc.record({ choice: fc.nat(4), text: fc.oneof(anyText, fc.constant([''])), least: fc.nat(3) });
  const step = fc.record({
    kind: fc.constantFrom('add', 'count', 'count with', 'fit'),
    pieces: fc.array(anyPiece, { minLength: 1, maxLength: 4 }),
    room: fc.integer({ min: -20, max: 60 }),
  });

  it('is counted as its choices are, one by one, whatever was counted before', async () => {
    await assertRuns(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const delivered = new DeliveredText(count);
        const all: Piece[] = [];
        for (const { kind, pieces, room } of steps) {
          const more = pieces.map(({ choice, text, least }) => ({ choice, text: toStringBody(text.join('')), least }));
          const [sum, limit] = [plainCount([...all, ...more]), Math.max(0, plainCount(all) + room)];
          if (kind === 'add') {
            for (const one of more) delivered.add(one);
            all.push(...more);
          } else if (kind === 'count') expect(delivered.tokens()).toBe(plainCount(all));
          else if (kind === 'count with') {
            expect(delivered.tokensWith(more)).toBe(sum);
            if (sum <= limit) expect(delivered.tokensWith(more, limit)).toBe(sum);
            else expect(delivered.tokensWith(more, limit)).toBeGreaterThan(limit);
          } else {
            const fresh = new DeliveredText(count);
            for (const one of all) fresh.add(one);
            const [piece, ...before] = more;
            expect(delivered.fitting(before, piece!, limit)).toBe(fresh.fitting(before, piece!, limit));
          }
        }
        expect(delivered.tokens()).toBe(plainCount(all));
      }),
      { seed: SEED, leastRuns: 100, timeBoxMs: 3_000 },
    );
  });

  it('of very many choices is counted in time proportional to the new text, and is kept in a few megabytes', () => {
    let counts = 0;
    const delivered = new DeliveredText((text) => ((counts += 1), text.length));
    const buffers = process.memoryUsage().arrayBuffers;
    for (let choice = 0; choice < MOST_CHOICES; choice += 1) {
      const next = piece('a', choice);
      if (choice % 64 === 0) expect(delivered.tokensWith([next], MOST_CHOICES)).toBe(choice + 1);
      delivered.add(next);
    }
    expect(process.memoryUsage().arrayBuffers - buffers).toBeLessThan(2 * MOST_CHOICES * 32);
    expect(delivered.uncountedBytes).toBeLessThan(64 * 32);
    expect(delivered.tokens()).toBe(MOST_CHOICES);
    expect(delivered.uncountedBytes).toBe(0);
    expect(counts).toBeLessThan(1.1 * MOST_CHOICES);
    const chunk = Array.from({ length: MOST_CHOICES }, (_, choice) => piece('b', choice));
    expect(delivered.tokensWith(chunk)).toBe(2 * MOST_CHOICES);
    expect(counts).toBeLessThan(2.2 * MOST_CHOICES);
  });
});

/** The count of all text of each choice, as a whole. */
function plainCount(pieces: readonly Piece[]): number {
  const choices = [...new Set(pieces.map(({ choice }) => choice))];
  return choices.reduce((sum, choice) => {
    const own = pieces.filter((one) => one.choice === choice);
    const least = own.reduce((most, one) => most + one.least, 0);
    return sum + Math.max(least, count(textOf(own.map(({ text }) => text).join(''))));
  }, 0);
}
