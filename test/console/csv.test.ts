import { csvCell, csvOf } from '../../apps/console/web/src/csv';

it.each([
  ['=HYPERLINK("http://evil.example")', `"'=HYPERLINK(""http://evil.example"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
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
