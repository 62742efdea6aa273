import { TokenBytes } from './token-bytes';

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe('the tokens by their bytes', () => {
  it('are found, and nothing else is', () => {
    const words = Array.from({ length: 3_000 }, (_, i) => `${i.toString(36)} wörter${'é'.repeat(i % 7)}`);
    const tokens = new TokenBytes(words.length);
    for (const word of words) tokens.add(bytesOf(word), bytesOf(word).length);
    const has = (text: string) => tokens.has(bytesOf(text), bytesOf(text).length);
    expect(words.filter((word) => !has(word))).toEqual([]);
    const others = words.flatMap((word) => [`${word}x`, word.slice(1), word.toUpperCase()]);
    const known = new Set(words);
    expect(others.filter((word) => has(word) !== known.has(word))).toEqual([]);
  });

  it('are compared by the given length only', () => {
    const tokens = new TokenBytes(1);
    tokens.add(bytesOf('tokens'), 'token'.length);
    expect(tokens.has(bytesOf('tokenizer'), 'token'.length)).toBe(true);
    expect(tokens.has(bytesOf('tokens'), 'tokens'.length)).toBe(false);
  });

  it('are not more than the table has places for, so that a search ends', () => {
    const tokens = new TokenBytes(2);
    tokens.add(bytesOf('a'), 1);
    tokens.add(bytesOf('b'), 1);
    expect(() => tokens.add(bytesOf('c'), 1)).toThrow('more than 2 tokens');
  });
});
