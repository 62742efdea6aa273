/**
 * A check of some tenants, like those in audit.ts. What budgets watch counts in the month in which a request ended,
 * which may be another than the one in which it is billed.
 */
export const SPENDING_CHECK = {
  check: 'the spending of a month is the sum of its charges',
  sql: `WITH of_key AS MATERIALIZED (
      SELECT tenant_id, date_trunc('month', ended_at AT TIME ZONE 'UTC') AS month, key_id, sum(cost_nanos) AS nanos
      FROM charge WHERE tenant_id = ANY($1) GROUP BY 1, 2, 3),
    charged AS (
      SELECT tenant_id, to_char(month, 'YYYY-MM') AS period, coalesce(key_id, '') AS key_id, sum(nanos) AS nanos
      FROM of_key GROUP BY tenant_id, month, GROUPING SETS ((of_key.key_id), ()))
    SELECT tenant_id AS "tenantId", '{}'::text[] AS ids,
      format('%s, %s: %s nanos', period, coalesce(nullif(key_id, ''), 'all keys'), coalesce(nanos, 0)) AS expected,
      format('%s, %s: %s nanos', period, coalesce(nullif(key_id, ''), 'all keys'), coalesce(spent_nanos, 0)) AS actual
    FROM charged
    FULL JOIN (SELECT tenant_id, period::text AS period, key_id, spent_nanos
      FROM budget_month WHERE tenant_id = ANY($1)) spent USING (tenant_id, period, key_id)
    WHERE coalesce(nanos, 0) <> coalesce(spent_nanos, 0)`,
};
