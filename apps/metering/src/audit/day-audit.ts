import { unfinishedSql, type InRange } from '../record/unfinished';

const SUMS = [
  'requests',
  'failed',
  'client_closed',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'estimated',
  'cost_nanos',
];
const of = (table: string) => SUMS.map((name) => `${table}.${name}`).join(', ');

const ENDS = ['failed', 'client_closed'];

/**
 * The condition that a row's whole hour or day ends in the part. `$1`, `$2`: after this tenant and hour. `$3`, `$4`: up
 * to this one. Ranges of adjoining parts adjoin. So a day is compared once, in the part in which its last hour is, and
 * such a part reads the other hours of its first day again.
 */
const endsInPart = (unit: 'hour' | 'day'): InRange => {
  const after = (hour: string) => `date_trunc('${unit}', ${hour}::timestamptz + interval '1 hour', 'UTC')`;
  return (time) =>
    `(tenant_id, ${time}) >= ($1, ${after('$2')})
      AND ($3::text IS NULL OR (tenant_id, ${time}) < ($3, ${after('$4')}))`;
};

/**
 * For whole hours or days of the part: compares what is folded (record/usage-days.ts) with the sums of its hours, which
 * are proven by themselves, and with the requests that did not end normally.
 */
function foldedSql(table: string, unit: 'hour' | 'day', until: string, columns: Record<string, string>): string {
  const folded = `(SELECT ${until} FROM usage_folded)`;
  const names = Object.keys(columns).join(', ');
  const read = Object.entries(columns).map(([name, value]) => `${value} AS ${name}`);
  const summed = SUMS.map((name) => `sum(${name}) AS ${name}`);
  const inPart = endsInPart(unit);
  const withoutEnds = SUMS.map((name) => (ENDS.includes(name) ? `0 AS ${name}` : name));
  const unfinished = unfinishedSql((time) => `${inPart(time)} AND ${time} < ${folded}`);
  return `
    WITH hours AS (
      SELECT tenant_id, ${[...read, ...summed].join(', ')}
      FROM (
        SELECT tenant_id, hour, model, key_id, ${withoutEnds.join(', ')}
        FROM usage_hour WHERE ${inPart('hour')} AND hour < ${folded}
        UNION ALL
        SELECT tenant_id, hour, model, key_id, ${SUMS.map((name) => (ENDS.includes(name) ? name : '0')).join(', ')}
        FROM ${unfinished} AS unfinished
      ) AS parts
      GROUP BY tenant_id, ${names}
    ), folded AS (SELECT * FROM ${table} WHERE ${inPart(unit)})
    SELECT tenant_id,
      concat_ws(' ', ${names}) || ': '
        || CASE WHEN h.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('h')}) END AS expected,
      CASE WHEN f.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('f')}) END AS actual
    FROM hours h FULL JOIN folded f USING (tenant_id, ${names})
    WHERE (${of('h')}) IS DISTINCT FROM (${of('f')})
    ORDER BY 1, 2`;
}

export const DAYS_SQL = foldedSql('usage_day', 'day', 'until', {
  day: `date_trunc('day', hour, 'UTC')`,
  model: 'model',
  key_id: 'key_id',
});
export const KEY_DAYS_SQL = foldedSql('key_day', 'day', 'until', {
  day: `date_trunc('day', hour, 'UTC')`,
  key_id: 'key_id',
});
export const MODEL_HOURS_SQL = foldedSql('model_hour', 'hour', 'hours_until', { hour: 'hour', model: 'model' });
