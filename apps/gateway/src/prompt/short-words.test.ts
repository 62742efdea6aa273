import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { createRequire } from 'node:module';
import { countTokens, countWithin } from './tokenizer';

const SEED = 20_261_123;
const ENCODINGS = ['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'] as const;

interface Library {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
}

const letters = fc.string({ unit: fc.constantFrom(...'etaoinshrdluz'), minLength: 1, maxLength: 14 });
const capital = fc.constantFrom('', '', '', 'A', 'T', 'Z', 'AB');
const before = fc.constantFrom(' ', ' ', ' ', ' ', '', '  ', '\n', '\t', '(', '’', 'é', '1', "'");
const after = fc.constantFrom('', '', '', ',', '.', "'s", "'", '’s', 'é', '\u0301', 'ſ', '1', '_', 'X', '\u0000');
const word = fc.tuple(before, capital, letters, after).map((parts) => parts.join(''));
const common = fc.constantFrom(' the', ' of', ' and', 'The', ' I', ' don', "'t", ' international', ' a', 'b');
const text = fc.array(fc.oneof(word, common), { minLength: 1, maxLength: 30 }).map((words) => words.join(''));

describe.each(ENCODINGS)('a text of short words in %s', (encoding) => {
  const library = createRequire(__filename)(`gpt-tokenizer/encoding/${encoding}`) as Library;
  const exactly = (counted: string) => library.countTokens(counted, { disallowedSpecial: new Set() });

  it('has the tokens that the library counts, whatever is between its words', async () => {
    await assertRuns(
      fc.property(text, (counted) => expect(countTokens(encoding, counted)).toBe(exactly(counted))),
      { seed: SEED, leastRuns: 1_000 },
    );
  });

  it('has the same tokens when it is read in windows, and when its words are counted again', async () => {
    await assertRuns(
      fc.property(text, fc.integer({ min: 64, max: 128 }), (counted, windowChars) => {
        const right = exactly(counted);
        expect(countWithin(encoding, counted, Infinity, windowChars)).toBe(right);
        expect(countWithin(encoding, counted, right, windowChars)).toBe(right);
        expect(countWithin(encoding, counted, right - 1, windowChars)).toBe(Infinity);
      }),
      { seed: SEED + 1, leastRuns: 500 },
    );
  });

  it('has the same tokens although other words took the places of its words', () => {
    const words = Array.from({ length: 40_000 }, (_, i) => ` ${[...i.toString(26)].map(letterOf).join('')}`);
    let tokens = 0;
    for (const one of words) tokens += countTokens(encoding, one);
    for (const one of words.reverse()) tokens -= countTokens(encoding, one);
    expect(tokens).toBe(0);
    expect(countTokens(encoding, words.slice(0, 3_000).join(''))).toBe(exactly(words.slice(0, 3_000).join('')));
  });
});

function letterOf(digit: string): string {
  return String.fromCharCode(0x61 + parseInt(digit, 26));
}
