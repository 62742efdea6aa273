import { validateName } from './names';

const hex = (code: number) => `U+${code.toString(16).padStart(4, '0').toUpperCase()}`;
const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

it.each([
  ...[0x061c, 0x200e, 0x200f, ...range(0x202a, 0x202e), ...range(0x2066, 0x2069)].map(
    (code) => [code, /direction/] as const,
  ),
  ...[0x2028, 0x2029].map((code) => [code, /separators/] as const),
  ...[0, 9, 10, 13, 0x1b, 0x7f, 0x85].map((code) => [code, /control characters/] as const),
])('a name that contains character %d is refused with the reason', (code, reason) => {
  expect([hex(code), validateName(`a${String.fromCodePoint(code)}b`)]).toEqual([
    hex(code),
    expect.stringMatching(reason),
  ]);
});

it.each([
  0x200b, 0x200c, 0x200d, 0x2060, 0xfeff, 0x00ad, 0x034f, 0x115f, 0x1160, 0x17b4, 0x180e, 0x2800, 0x3164, 0xffa0,
  0xe0001, 0xfe0f, 0x0301, 0x00a0, 0x3000,
])('a name that consists of the invisible character %d is refused', (code) => {
  const one = String.fromCodePoint(code);
  for (const name of [one, one.repeat(3), `${one}\u200b${one}`])
    expect(validateName(name)).toMatch(/visible character/);
});

it.each([
  'backend',
  'Ünïcödé',
  'é',
  '日本語',
  'שלום',
  'مرحبا',
  'हिन्दी',
  '😀',
  '👩‍👩‍👧',
  '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  'می‌خواهم',
  '-',
  '$',
  '7',
  'a\u00a0b',
])('the name %s is accepted', (name) => expect(validateName(name)).toBeNull());
