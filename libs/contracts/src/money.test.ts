import fc from 'fast-check';
import { costNanos, parsePrice, roundPartsToCents, NANOS_PER_CENT } from './money';

const price = {
  version: 'v',
  inputFemtos: '150000000',
  cachedInputFemtos: '75000000',
  outputFemtos: '600000000',
  requestNanos: '0',
};

describe('money', () => {
  it('reads prices exactly and refuses invalid ones', () => {
    expect(parsePrice('0.15')).toBe(150_000_000n);
    expect(parsePrice('0.000000001')).toBe(1n);
    expect(parsePrice('0')).toBe(0n);
    for (const bad of ['-1', '1e3', '', '.5', '0.0000000001', '1000001', 'abc'])
      expect(() => parsePrice(bad)).toThrow(RangeError);
  });

  it('charges each dimension once and rounds the sum up to a nano', () => {
    expect(costNanos({ promptTokens: 10, cachedTokens: 4, completionTokens: 5 }, price)).toBe(
      6n * 150n + 4n * 75n + 5n * 600n,
    );
    expect(costNanos({ promptTokens: 1, cachedTokens: 0, completionTokens: 0 }, { ...price, inputFemtos: '1' })).toBe(
      1n,
    );
    expect(() => costNanos({ promptTokens: 1, cachedTokens: 2, completionTokens: 0 }, price)).toThrow(RangeError);
    expect(() => costNanos({ promptTokens: -1, cachedTokens: 0, completionTokens: 0 }, price)).toThrow(RangeError);
  });

  it('rounds parts so that they add up exactly to the rounded total', () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt(0n, 10n ** 15n), { maxLength: 40 }), (parts) => {
        const { totalCents, partCents } = roundPartsToCents(parts);
        expect(partCents.reduce((a, b) => a + b, 0n)).toBe(totalCents);
        partCents.forEach((cents, i) => {
          const exact = parts[i]! / NANOS_PER_CENT;
          expect(cents === exact || cents === exact + 1n).toBe(true);
        });
      }),
    );
  });
});
