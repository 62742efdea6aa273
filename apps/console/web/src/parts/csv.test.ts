import { csvCell, csvOf } from './csv';
import { usageRows } from '../usage/usage-rows';

it.each([
  ['=HYPERLINK("http://evil.example")', `"'=HYPERLINK(""http://evil.example"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  // Where the decimal sign is a comma, spreadsheets end cells at semicolons, also within quotes.
  ["x;=cmd|' /C calc'!A0;", "x;'=cmd|' /C calc'!A0;"],
  ['a,b;-1', `"a,b;'-1"`],
  // A quote begins a quoted cell there, and the doubled one ends it.
  [`x;"=cmd|' /C calc'!A0;`, `"x;""'=cmd|' /C calc'!A0;"`],
  ['\t=1', "'\t=1"],
  ['\r=1', `"'\r=1"`],
])('a name that a spreadsheet would take for a formula is text: %j', (name, cell) => {
  expect(csvCell(name)).toBe(cell);
});

it('quotes, commas and lines stay within their cell, and numbers stay numbers', () => {
  const rows = [
    { name: 'a "b", c\nd', cents: -5, none: null },
    { name: 'plain', cents: 7, none: undefined },
  ];
  expect(csvOf(rows)).toBe('name,cents,none\r\n"a ""b"", c\nd",-5,\r\nplain,7,\r\n');
});

it('usage by key has the id of each key beside its name, and others have none', () => {
  const points = [
    { name: 'key_1', requests: 1 },
    { name: null, requests: 2 },
  ].map((one) => ({ at: 'now', ...one }));
  const nameOf = (name: string | null) => (name === null ? 'others' : '=first');
  const csvBy = (by: 'key' | 'model') => csvOf(usageRows(points as never, by, nameOf));
  expect(csvBy('key')).toBe("at,keyId,name,requests\r\nnow,key_1,'=first,1\r\nnow,,others,2\r\n");
  expect(csvBy('model')).toBe("at,name,requests\r\nnow,'=first,1\r\nnow,others,2\r\n");
});
