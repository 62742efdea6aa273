import { unfinishedSql } from '../record/unfinished';

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
 * For tenants whose last hours are in the part: compares what is folded (record/usage-days.ts) with the sums of its
 * hours, which are proven by themselves, and with the requests that did not end normally. `$1`, `$2`: from this tenant,
 * before that one.
 */
function foldedSql(table: string, until: string, columns: Record<string, string>): string {
  const folded = `(SELECT ${until} FROM usage_folded)`;
  const names = Object.keys(columns).join(', ');
  const read = Object.entries(columns).map(([name, value]) => `${value} AS ${name}`);
  const summed = SUMS.map((name) => `sum(${name}) AS ${name}`);
  const tenants = '(tenant_id >= $1 AND ($2::text IS NULL OR tenant_id < $2))';
  const withoutEnds = SUMS.map((name) => (ENDS.includes(name) ? `0 AS ${name}` : name));
  const unfinished = unfinishedSql({ tenant: tenants, from: `'-infinity'`, to: folded });
  return `
    WITH hours AS (
      SELECT tenant_id, ${[...read, ...summed].join(', ')}
      FROM (
        SELECT tenant_id, hour, model, key_id, ${withoutEnds.join(', ')}
        FROM usage_hour WHERE ${tenants} AND hour < ${folded}
        UNION ALL
        SELECT tenant_id, hour, model, key_id, ${SUMS.map((name) => (ENDS.includes(name) ? name : '0')).join(', ')}
        FROM ${unfinished} AS unfinished
      ) AS parts
      GROUP BY tenant_id, ${names}
    ), folded AS (SELECT * FROM ${table} WHERE ${tenants})
    SELECT tenant_id,
      concat_ws(' ', ${names}) || ': '
        || CASE WHEN h.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('h')}) END AS expected,
      CASE WHEN f.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('f')}) END AS actual
    FROM hours h FULL JOIN folded f USING (tenant_id, ${names})
    WHERE (${of('h')}) IS DISTINCT FROM (${of('f')})
    ORDER BY 1, 2`;
}

export const DAYS_SQL = foldedSql('usage_day', 'until', {
  day: `date_trunc('day', hour, 'UTC')`,
  model: 'model',
  key_id: 'key_id',
});
export const KEY_DAYS_SQL = foldedSql('key_day', 'until', { day: `date_trunc('day', hour, 'UTC')`, key_id: 'key_id' });
export const MODEL_HOURS_SQL = foldedSql('model_hour', 'hours_until', { hour: 'hour', model: 'model' });
