/**
 * PostgreSQL array literals. They are made here because node-postgres escapes each element by itself. Of 21,000
 * elements in a batch, nearly all are ids, numbers and times that need no quotes.
 */

/** For values that need no quotes: ids, numbers, times, booleans. null becomes NULL. */
export function plainArray(values: readonly (string | number | bigint | boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

/** For any text. */
export function textArray(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
