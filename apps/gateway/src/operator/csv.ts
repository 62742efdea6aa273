/** A line of CSV (RFC 4180). An absent value is empty. */
export function csvLine(values: readonly (string | number | null | undefined)[]): string {
  return `${values.map(cell).join(',')}\r\n`;
}

/**
 * Where a spreadsheet would compute a text, because it begins like a formula. Where the decimal sign is a comma, cells
 * also end at semicolons, and quotes count only after one: a doubled quote there is an empty text before the formula.
 */
const BEFORE_FORMULA = /(^|;"*)(?=[=+\-@])/g;

/** A text that a spreadsheet would compute gets an apostrophe. */
function cell(value: string | number | null | undefined): string {
  if (typeof value === 'number') return String(value);
  const text = (value ?? '').replace(BEFORE_FORMULA, "$1'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
