/** Rows in columns, two spaces apart, for people. `empty` is the text for no rows. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], empty: string): string {
  if (rows.length === 0) return empty;
  const lines = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => [...line[column]!].length)));
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell + ' '.repeat(widths[i]! - [...cell].length))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names come from outside, so control characters for a terminal are not printed. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '\uFFFD');
}

/** "1 tenant", "2 tenants". */
export function counted(number: number | string, one: string): string {
  return `${number} ${one}${Number(number) === 1 ? '' : 's'}`;
}
