import fc from 'fast-check';
import { countTokens, encode } from 'gpt-tokenizer/encoding/o200k_base';
import { VOCABULARY, words } from './words';

describe('words', () => {
  it('are one token each', () => {
    expect(VOCABULARY.filter((piece) => encode(piece).length !== 1)).toEqual([]);
    expect(
      VOCABULARY.map((piece) => piece.trim()).filter((piece) => encode(piece).length !== 1 && /^[A-Z]/.test(piece)),
    ).toEqual([]);
  });

  it('make a text of exactly the given number of tokens, wherever it is cut', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 200 }), fc.nat(200), (seed, count, cut) => {
        const pieces = words(seed, count);
        expect(pieces).toHaveLength(count);
        expect(countTokens(pieces.join(''))).toBe(count);
        expect(countTokens(pieces.slice(0, cut).join(''))).toBe(Math.min(cut, count));
      }),
    );
  });

  it('are the same for the same seed, differ for another, and form sentences', () => {
    expect(words(7, 60)).toEqual(words(7, 60));
    expect(words(7, 60)).not.toEqual(words(8, 60));
    expect(words(7, 60).join('')).toMatch(/^[A-Z][a-z]+( [a-z]+|\. [A-Z][a-z]+)*\.$/);
  });
});
