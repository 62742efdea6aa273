/** Parts of a statement: a condition on the tenant, and a range of whole hours. */
export interface TenantHours {
  tenant: string;
  from: string;
  to: string;
}

/** The condition that a row, whose time is in this column, is in a range. */
export type InRange = (time: string) => string;

export const inHours =
  ({ tenant, from, to }: TenantHours): InRange =>
  (time) =>
    `${tenant} AND ${time} >= ${from} AND ${time} < ${to}`;

/**
 * The requests that did not end normally, to select from: tenant_id, hour, model, key_id, failed and client_closed.
 * They are read from an index of these few events, and once their month is dropped, from its sums by the hour.
 * `where`: a further condition, on the model and the key.
 */
export const unfinishedSql = (inRange: InRange, where = 'true'): string => `(
  SELECT tenant_id, date_bin('1 hour', ended_at, '2000-01-01Z') AS hour, model, key_id,
    (outcome <> 'client_closed')::int AS failed, (outcome = 'client_closed')::int AS client_closed
  FROM usage_event
  WHERE ${inRange('ended_at')} AND outcome <> 'complete' AND ${where}
  UNION ALL
  SELECT tenant_id, hour, model, key_id, failed, client_closed FROM dropped_unfinished
  WHERE ${inRange('hour')} AND ${where})`;
