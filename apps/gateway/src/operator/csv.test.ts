import { csvLine } from './csv';

it.each([
  ['=1+1', `'=1+1`],
  ['+1', `'+1`],
  ['-1', `'-1`],
  ['@SUM(A1)', `'@SUM(A1)`],
  // Where the decimal sign is a comma, spreadsheets end cells at semicolons, also within quotes.
  [`x;=cmd|' /C calc'!A0;`, `x;'=cmd|' /C calc'!A0;`],
  ['a;+1;-1;@x', `a;'+1;'-1;'@x`],
  // A quote begins a quoted cell there, and the doubled one ends it.
  [`x;"=cmd|' /C calc'!A0;`, `"x;""'=cmd|' /C calc'!A0;"`],
  ['{"name":"x;=1;"}', `"{""name"":""x;'=1;""}"`],
  ['a;b = c', 'a;b = c'],
  ['2026-11-01', '2026-11-01'],
])('a text that a spreadsheet would take for a formula is text: %j', (text, cell) => {
  expect(csvLine([text])).toBe(`${cell}\r\n`);
});

it('numbers stay numbers, and an absent value is empty', () => {
  expect(csvLine([-5, null, undefined, 'a,"b"'])).toBe('-5,,,"a,""b"""\r\n');
});
