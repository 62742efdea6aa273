/** Without 24:00, which `Date.parse` reads: each instant has one text. PostgreSQL refuses the year 0000. */
const INSTANT = /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z$/;

/** Later times have years of more digits, which `Date` and PostgreSQL read in other ways. */
export const LAST_INSTANT_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Whether `value` is a time as services write it: ISO 8601 UTC with milliseconds, on a day of the calendar.
 * `Date.parse` reads the 30th of February as the 2nd of March, and PostgreSQL refuses it.
 */
export function isInstant(value: unknown): value is string {
  if (typeof value !== 'string' || !INSTANT.test(value)) return false;
  const [year, month, day] = [Number(value.slice(0, 4)), Number(value.slice(5, 7)), Number(value.slice(8, 10))];
  return day <= 28 || day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
