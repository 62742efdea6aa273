/**
 * Postgres array literals. Made here and not by node-postgres, which escapes each element on its own: of 21,000
 * elements in a batch nearly all are ids, numbers and times that need no quotes.
 */

/** Of values that need no quotes: ids, numbers, times, booleans; null is NULL. */
export function plainArray(values: readonly (string | number | bigint | boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`;
}

/** Of any text. */
export function textArray(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
