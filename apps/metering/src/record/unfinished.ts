/** Parts of a statement: a condition on the tenant, and a range of whole hours. */
export interface TenantHours {
  tenant: string;
  from: string;
  to: string;
}

/**
 * The requests that did not end normally, to select from: tenant_id, hour, model, key_id, failed and client_closed.
 * They are read from an index of these few events, and once their month is dropped, from its sums by the hour.
 * `where`: a further condition, on the model and the key.
 */
export const unfinishedSql = ({ tenant, from, to }: TenantHours, where = 'true'): string => `(
  SELECT tenant_id, date_bin('1 hour', ended_at, '2000-01-01Z') AS hour, model, key_id,
    (outcome <> 'client_closed')::int AS failed, (outcome = 'client_closed')::int AS client_closed
  FROM usage_event
  WHERE ${tenant} AND ended_at >= ${from} AND ended_at < ${to} AND outcome <> 'complete' AND ${where}
  UNION ALL
  SELECT tenant_id, hour, model, key_id, failed, client_closed FROM dropped_unfinished
  WHERE ${tenant} AND hour >= ${from} AND hour < ${to} AND ${where})`;
