import fc from 'fast-check';
import { textMatching } from './pattern';
import { Random } from './random';
import { SchemaError } from './schema-error';

describe('a text for a pattern', () => {
  it.each([
    '^[A-Z]{3}-\\d{4}$',
    'abc',
    '',
    '^$',
    '^a{0}b{2,}c{3,5}$',
    '^\\w+\\s\\S\\D\\W$',
    '^[^a-zA-Z0-9]{2}$',
    '^[\\]\\-x]{4}$',
    '^[-+]?\\d*\\.\\d+$',
    '^[a-c-]{3}$',
    '^[^\\n]+$',
    '^https://[\\w.]+/\\$$',
    '^é{2}😀{2}$',
    '^.{10}$',
    '^[é]?$',
  ])('matches %s', (pattern) => {
    for (let seed = 0; seed < 50; seed++)
      expect(textMatching(pattern, new Random(seed))).toMatch(new RegExp(pattern, 'u'));
  });

  it('matches whatever classes, literals and counts the pattern has', () => {
    const atom = fc.constantFrom('a', '-', '/', ' ', '.', '\\d', '\\W', '\\.', '[a-f]', '[^\\w]', '[\\d_-]', '[$^.]');
    const count = fc.constantFrom('', '+', '*', '?', '{2}', '{0,1}', '{1,}', '{3,4}');
    fc.assert(
      fc.property(fc.array(fc.tuple(atom, count), { maxLength: 12 }), fc.integer(), (parts, seed) => {
        const pattern = `^${parts.flat().join('')}$`;
        expect(textMatching(pattern, new Random(seed))).toMatch(new RegExp(pattern, 'u'));
      }),
    );
  });

  it.each([
    '(a+)+c|a{40}',
    '(a)',
    'a|b',
    '(?=.*\\d)a',
    'a+?',
    'a++',
    '*a',
    '^*',
    'a^b',
    'a$b',
    '\\b',
    '\\1',
    '\\p{L}',
    '\\',
    '\\-',
    '[',
    '[a',
    '[]',
    '[b-a]',
    '[\\w-z]',
    'a]',
    'a{',
    'a{,2}',
    'a{2,1}',
    '[é]',
    'a{20000}',
    'a{9999999999}',
    'a'.repeat(2_000),
  ])('is refused for the pattern %#, which is not simple', (pattern) => {
    expect(() => textMatching(pattern, new Random(1))).toThrow(SchemaError);
  });

  it('is made at once for a pattern whose match would take forever', () => {
    const pattern = '^a{30}a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b?c$';
    expect(textMatching(pattern, new Random(1))).toBe(`${'a'.repeat(30)}c`);
  });
});
