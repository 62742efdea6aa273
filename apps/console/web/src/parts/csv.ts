/**
 * Before these characters, a spreadsheet takes the rest of a cell for a formula. Where the decimal sign is a comma,
 * cells also end at semicolons, and quotes count only after one: a doubled quote there is an empty text before the
 * formula.
 */
const BEFORE_FORMULA = /(^|;"*)(?=[=+\-@\t\r])/g;

/** A cell of CSV. Names come from people, so none may become a formula. */
export function csvCell(value: string | number | null | undefined): string {
  const text = String(value ?? '');
  const safe = typeof value === 'string' ? text.replace(BEFORE_FORMULA, "$1'") : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows with the same fields as CSV, the names of the fields first. */
export function csvOf(rows: readonly object[]): string {
  const fields = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = rows.map((row) =>
    fields.map((field) => csvCell((row as Record<string, string | number | null>)[field])).join(','),
  );
  return [fields.map(csvCell).join(','), ...lines, ''].join('\r\n');
}
