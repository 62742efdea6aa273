import { TokenBytes } from './token-bytes';
import { vocabularyOf } from './vocabulary';

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe('the tokens by their bytes', () => {
  it('are found, and nothing else is', () => {
    const words = Array.from({ length: 3_000 }, (_, i) => `${i.toString(36)} wörter${'é'.repeat(i % 7)}`);
    const tokens = new TokenBytes(vocabularyOf(words));
    const has = (text: string) => tokens.has(bytesOf(text), bytesOf(text).length);
    expect(words.filter((word) => !has(word))).toEqual([]);
    const others = words.flatMap((word) => [`${word}x`, word.slice(1), word.toUpperCase()]);
    const known = new Set(words);
    expect(others.filter((word) => has(word) !== known.has(word))).toEqual([]);
  });

  it('are compared by the given length only', () => {
    const tokens = new TokenBytes(vocabularyOf(['token']));
    expect(tokens.has(bytesOf('tokenizer'), 'token'.length)).toBe(true);
    expect(tokens.has(bytesOf('tokens'), 'tokens'.length)).toBe(false);
  });

  it('may lack ranks, which are no tokens', () => {
    const tokens = new TokenBytes(vocabularyOf([undefined, 'a', undefined, [0xff, 0xfe]]));
    expect([tokens.has(bytesOf('a'), 1), tokens.has(bytesOf('b'), 1)]).toEqual([true, false]);
    expect([tokens.has(Uint8Array.of(0xff, 0xfe), 2), tokens.has(bytesOf(''), 0)]).toEqual([true, false]);
  });
});
