import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { measure, split } from './tokenizer';

describe('tokenizer', () => {
  it('counts like gpt-tokenizer, also repeated texts, other scripts and the text of special tokens', () => {
    const asText = { disallowedSpecial: new Set<string>() };
    for (const text of [
      '',
      'hello world',
      'Grüße aus Köln 🌍',
      '日本語のテキスト',
      'a <|endoftext|> b',
      '{"a": [1, 2]}\n\n\t',
      'word '.repeat(5_000),
    ]) {
      expect(measure(text).tokens).toBe(countTokens(text, asText));
      expect(measure(text).tokens).toBe(countTokens(text, asText));
    }
  });

  it('is fast for a megabyte without a blank, and never counts too few tokens', () => {
    const before = process.cpuUsage();
    const { tokens } = measure('x'.repeat(1_000_000));
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(2_000);
    expect(tokens).toBeGreaterThanOrEqual(1_000_000 / 8);
    expect(tokens).toBeLessThan(1_000_000 / 8 + 2_000);
  });

  it('splits ASCII into its tokens', () => {
    const text = '{"city":"K\\u00f6ln","n":[1,2.5]}';
    expect(split(text).join('')).toBe(text);
    expect(split(text)).toHaveLength(countTokens(text));
  });

  it('splits a long run of one kind of character without merging it as a whole', () => {
    const text = `{"a":"${'x'.repeat(100_000)}","b":"${'!'.repeat(100_000)}${' '.repeat(100_000)}"}`;
    expect(split(text).join('')).toBe(text);
  });
});
