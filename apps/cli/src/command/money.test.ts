import { formatCents } from '@tollgate/contracts';
import fc from 'fast-check';
import { formatNanos, parseAmount, parseBudget, parseSignedAmount } from './money';

describe('parseAmount', () => {
  it('reads currency units as whole cents', () => {
    expect(['10', '10.5', '10.05', '0.01', '007', '90071992547409.91'].map(parseAmount)).toEqual([
      1_000,
      1_050,
      1_005,
      1,
      700,
      Number.MAX_SAFE_INTEGER,
    ]);
  });

  it.each([
    '',
    ' ',
    '0',
    '0.00',
    '-1',
    '+1',
    '1.234',
    '1.',
    '.5',
    '1,50',
    '1e3',
    '0x10',
    'ten',
    '90071992547409.92',
    '١٠',
  ])('refuses %j', (text) => expect(() => parseAmount(text)).toThrow(RangeError));

  it('says that a negative amount must be positive', () =>
    expect(() => parseAmount('-5')).toThrow('It must be a positive number of currency units'));

  it.each(['90071992547409.92', '9'.repeat(100)])('says that %s is too large', (text) =>
    expect(() => parseAmount(text)).toThrow('It is too large.'),
  );

  it('is undone by formatCents, for every amount', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (cents) => {
        expect(parseAmount(formatCents(cents, 'USD').replace(' USD', ''))).toBe(cents);
      }),
    );
  });
});

it('the command line writes amounts to the last cent and nano', () => {
  expect([1_000, 5, 0, -1, -12_345].map((cents) => formatCents(cents, 'USD'))).toEqual([
    '10.00 USD',
    '0.05 USD',
    '0.00 USD',
    '-0.01 USD',
    '-123.45 USD',
  ]);
  expect(['0', '1', '-1', '12345678901'].map((nanos) => formatNanos(nanos, 'EUR'))).toEqual([
    '0.000000000 EUR',
    '0.000000001 EUR',
    '-0.000000001 EUR',
    '12.345678901 EUR',
  ]);
});

it('parseSignedAmount reads one sign, and otherwise is as strict as parseAmount', () => {
  expect(['-10', '-0.05', '10.50'].map(parseSignedAmount)).toEqual([-1_000, -5, 1_050]);
  for (const wrong of ['--1', '-', '-0', '- 1', '-1.234', '+1'])
    expect(() => parseSignedAmount(wrong)).toThrow(RangeError);
});

it('the error for a budget that is not an amount names the words that are allowed', () => {
  expect(['none', 'default', '0', '12.50'].map(parseBudget)).toEqual([null, 'default', 0, 1_250]);
  expect(() => parseBudget('unlimited')).toThrow('It must be "none", "default" or a number of currency units');
});
