import { LAST_INSTANT_MS, RequestError } from '@tollgate/contracts';

const ISO_UTC = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z)?$/;
const MAX_NAME_CHARS = 256;

/** A time of a query in milliseconds. RequestError invalid_parameter. */
export function parseTime(name: string, value: unknown): number {
  const ms = typeof value === 'string' && ISO_UTC.test(value) ? Date.parse(value) : NaN;
  // Negated, because a time that is none is NaN.
  if (!(ms >= 0))
    throw new RequestError('invalid_parameter', `${name} must be an ISO 8601 date or time in UTC from 1970 on.`);
  return ms;
}

/** A filter by a name or an id; null if absent. RequestError invalid_parameter. */
export function parseFilter(name: string, value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value !== 'string' || value.length > MAX_NAME_CHARS || value.includes('\0'))
    throw new RequestError('invalid_parameter', `${name} must be a text of at most ${MAX_NAME_CHARS} characters.`);
  return value;
}

/** A whole number from 1 to `max`. RequestError invalid_parameter. */
export function parseCount(name: string, value: unknown, max: number): number {
  if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > max)
    throw new RequestError('invalid_parameter', `${name} must be a whole number from 1 to ${max}.`);
  return Number(value);
}

/** A time of a statement. The end of the last hour of the year 9999 is its last millisecond. */
export const iso = (ms: number): string => new Date(Math.min(ms, LAST_INSTANT_MS)).toISOString();
