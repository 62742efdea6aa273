import { HOUR_MS } from './parameters';

// Tables of a tenant's sums to select from, as parts of one statement, so of one snapshot: hour, model, key_id (null
// where it is not known), and the sums. Days that are folded (record/usage-days.ts) are read from smaller tables.

const DAY_MS = 24 * HOUR_MS;
const SUMS = `requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, estimated, cost_nanos`;

/** Parameters of the statement: the tenant, and a range of whole hours. */
export interface HourRange {
  tenant: string;
  from: string;
  to: string;
}

/** The same, and the whole days in the range (`wholeDays`). */
export interface DayRange extends HourRange {
  firstDay: string;
  endOfDays: string;
}

/** The whole days (UTC) in a range, ISO 8601; two times that are equal if there are none. */
export function wholeDays(from: string, to: string): [string, string] {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const startMs = Math.min(Math.ceil(fromMs / DAY_MS) * DAY_MS, toMs);
  const endMs = Math.max(Math.floor(toMs / DAY_MS) * DAY_MS, startMs);
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
}

/** By the hour. `where`: a further condition, on the model and the key. */
export function hoursSql({ tenant, from, to }: HourRange, where: string): string {
  return `(SELECT hour, model, key_id, ${SUMS} FROM usage_hour
    WHERE tenant_id = ${tenant} AND ${where} AND hour >= ${from} AND hour < ${to})`;
}

/** By the hour without keys, as far as it is folded, and then with them. `where`: on the model. */
export function hoursOfModelsSql({ tenant, from, to }: HourRange, where: string): string {
  const folded = foldedUntil(from, to);
  return `(
    SELECT hour, model, NULL AS key_id, ${SUMS} FROM model_hour
    WHERE tenant_id = ${tenant} AND ${where} AND hour >= ${from} AND hour < ${folded}
    UNION ALL ${hoursSql({ tenant, from: folded, to }, where)})`;
}

/**
 * By the day, whose beginning is the hour, as far as it is folded, and by the hour. `where`: on the model and the key.
 */
export function daysOfKeysSql({ tenant, from, to, firstDay, endOfDays }: DayRange, where: string): string {
  const start = `${firstDay}::timestamptz`;
  const folded = foldedUntil(firstDay, endOfDays);
  return `(
    SELECT day AS hour, model, key_id, ${SUMS} FROM usage_day
    WHERE tenant_id = ${tenant} AND ${where} AND day >= ${start} AND day < ${folded}
    UNION ALL ${hoursSql({ tenant, from, to: start }, where)}
    UNION ALL ${hoursSql({ tenant, from: folded, to }, where)})`;
}

/** The end of what is folded, within a range. */
const foldedUntil = (from: string, to: string): string =>
  `(SELECT least(greatest(until, ${from}::timestamptz), ${to}::timestamptz) FROM usage_folded)`;
