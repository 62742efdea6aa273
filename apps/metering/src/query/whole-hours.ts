import { inHours, unfinishedSql } from '../record/unfinished';
import { DAY_MS } from '../hours';

// Tables of a tenant's sums to select from, as parts of one statement, so of one snapshot: hour, model and key_id (null
// where they are not known), and the sums. Hours that are folded (record/usage-days.ts) are read from smaller tables.

const AMOUNTS = `requests, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, estimated, cost_nanos`;
const NO_AMOUNTS = AMOUNTS.replace(/\w+/g, '0');

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

export interface Rollups {
  /** Without `failed` and `client_closed` of hours that are not folded. */
  amounts: string;
  complete: string;
}

/** The whole days (UTC) in a range, ISO 8601; two times that are equal if there are none. */
export function wholeDays(from: string, to: string): [string, string] {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  const startMs = Math.min(Math.ceil(fromMs / DAY_MS) * DAY_MS, toMs);
  const endMs = Math.max(Math.floor(toMs / DAY_MS) * DAY_MS, startMs);
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
}

/** By the hour. `where`: a further condition, on the model and the key. */
export const hoursOfKeys = (range: HourRange, where: string): Rollups => rollups([], [range], where);

/** By the hour without keys, as far as it is folded, and then with them. `where`: on the model. */
export function hoursOfModels({ tenant, from, to }: HourRange, where: string): Rollups {
  const folded = foldedUntil('hours_until', from, to);
  const hours = `
    SELECT hour, model, NULL AS key_id, ${AMOUNTS}, failed, client_closed FROM model_hour
    WHERE tenant_id = ${tenant} AND ${where} AND hour >= ${from} AND hour < ${folded}`;
  return rollups([hours], [{ tenant, from: folded, to }], where);
}

/**
 * By the day, whose beginning is the hour, as far as it is folded, and by the hour. `where`: on the model and the key.
 */
export const daysOfKeys = (range: DayRange, where: string): Rollups => days('usage_day', 'model', range, where);

/** The same without models. `where`: on the key. */
export const daysOfKeysAlone = (range: DayRange, where: string): Rollups => days('key_day', 'NULL', range, where);

function days(
  table: string,
  model: string,
  { tenant, from, to, firstDay, endOfDays }: DayRange,
  where: string,
): Rollups {
  const start = `${firstDay}::timestamptz`;
  const folded = foldedUntil('until', firstDay, endOfDays);
  const whole = `
    SELECT day AS hour, ${model} AS model, key_id, ${AMOUNTS}, failed, client_closed FROM ${table}
    WHERE tenant_id = ${tenant} AND ${where} AND day >= ${start} AND day < ${folded}`;
  const edges = [
    { tenant, from, to: start },
    { tenant, from: folded, to },
  ];
  return rollups([whole], edges, where);
}

/** The end of what is folded, within a range. */
const foldedUntil = (column: string, from: string, to: string): string =>
  `(SELECT least(greatest(${column}, ${from}::timestamptz), ${to}::timestamptz) FROM usage_folded)`;

/** `ranges`: the hours to read from `usage_hour`, which has no outcomes. */
function rollups(folded: readonly string[], ranges: readonly HourRange[], where: string): Rollups {
  const hours = ranges.map(
    ({ tenant, from, to }) => `
    SELECT hour, model, key_id, ${AMOUNTS}, 0 AS failed, 0 AS client_closed FROM usage_hour
    WHERE tenant_id = ${tenant} AND ${where} AND hour >= ${from} AND hour < ${to}`,
  );
  const ends = ranges.map(
    ({ tenant, ...range }) => `
    SELECT hour, model, key_id, ${NO_AMOUNTS}, failed, client_closed
    FROM ${unfinishedSql(inHours({ tenant: `tenant_id = ${tenant}`, ...range }), where)} AS unfinished`,
  );
  const amounts = [...folded, ...hours];
  return { amounts: union(amounts), complete: union([...amounts, ...ends]) };
}

const union = (parts: readonly string[]): string => `(${parts.join(' UNION ALL ')})`;
