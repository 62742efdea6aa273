import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { measure, split } from './tokenizer';

describe('tokenizer', () => {
  it('counts like gpt-tokenizer, also text seen before, other scripts and what looks like a special token', () => {
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

  it('stays quick for a megabyte without a break, and never counts too little', () => {
    const before = process.cpuUsage();
    const { tokens } = measure('x'.repeat(1_000_000));
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(2_000);
    expect(tokens).toBeGreaterThanOrEqual(1_000_000 / 8);
    expect(tokens).toBeLessThan(1_000_000 / 8 + 2_000);
  });

  it('cuts ASCII into its tokens', () => {
    const text = '{"city":"K\\u00f6ln","n":[1,2.5]}';
    expect(split(text).join('')).toBe(text);
    expect(split(text)).toHaveLength(countTokens(text));
  });
});
