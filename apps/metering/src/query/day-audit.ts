const SUMS = [
  'requests',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'reasoning_tokens',
  'estimated',
  'cost_nanos',
];
const of = (table: string) => SUMS.map((name) => `${table}.${name}`).join(', ');

/**
 * For tenants whose last hours are in the part: compares what is folded (record/usage-days.ts) with the sums of its
 * hours, which are proven by themselves. `$1`, `$2`: from this tenant, before that one.
 */
function foldedSql(table: string, columns: Record<string, string>): string {
  const names = Object.keys(columns).join(', ');
  const read = Object.entries(columns).map(([name, value]) => `${value} AS ${name}`);
  const summed = SUMS.map((name) => `sum(${name}) AS ${name}`);
  const tenants = 'tenant_id >= $1 AND ($2::text IS NULL OR tenant_id < $2)';
  return `
    WITH hours AS (
      SELECT tenant_id, ${[...read, ...summed].join(', ')} FROM usage_hour
      WHERE ${tenants} AND hour < (SELECT until FROM usage_folded) GROUP BY tenant_id, ${names}
    ), folded AS (SELECT * FROM ${table} WHERE ${tenants})
    SELECT tenant_id,
      concat_ws(' ', ${names}) || ': ' || CASE WHEN h.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('h')}) END
        AS expected,
      CASE WHEN f.requests IS NULL THEN 'nothing' ELSE concat_ws(' ', ${of('f')}) END AS actual
    FROM hours h FULL JOIN folded f USING (tenant_id, ${names})
    WHERE (${of('h')}) IS DISTINCT FROM (${of('f')})
    ORDER BY 1, 2`;
}

export const DAYS_SQL = foldedSql('usage_day', {
  day: `date_trunc('day', hour, 'UTC')`,
  model: 'model',
  key_id: 'key_id',
});
export const MODEL_HOURS_SQL = foldedSql('model_hour', { hour: 'hour', model: 'model' });
