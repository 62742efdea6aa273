import { MAX_NAMED_OF_PART } from '@tollgate/contracts';
import type { Query } from '@tollgate/postgres';

/** A place in the order of tenants and their hours. */
export interface Place {
  tenantId: string;
  hour: string;
}

/** With the sums of the tenant's hours up to there. So a history of many parts is not read again at its end. */
export interface Cursor extends Place {
  events: string;
  nanos: string;
}

/** A difference, as the statements find it. */
export interface Row {
  tenant_id: string;
  expected: string;
  actual: string;
}

/**
 * For tenants whose last hours are in the part: compares the total sum with that of all hours, which are proven by
 * themselves. The hours of the first tenant may have been summed in several parts, each of them a separate snapshot,
 * and a late event may have been recorded in between. So if they differ, the sums in this snapshot decide.
 */
export async function auditTenants(query: Query, from: Cursor, to: Place | undefined): Promise<Row[]> {
  const values = [from.tenantId, from.hour, to?.tenantId ?? null, from.events, from.nanos];
  const rows = await query<Row>(`${TENANTS_SQL} LIMIT ${MAX_NAMED_OF_PART + 1}`, values);
  if (from.tenantId === '' || rows[0]?.tenant_id !== from.tenantId) return rows;
  return [...(await query<Row>(TENANT_SQL, [from.tenantId])), ...rows.slice(1)];
}

/** The sums of the tenant's hours up to the end of the part. */
export async function sumUpTo(query: Query, from: Cursor, to: Place): Promise<Omit<Cursor, keyof Place>> {
  const before = from.tenantId === to.tenantId ? [from.events, from.nanos] : ['0', '0'];
  const [sums] = await query<Omit<Cursor, keyof Place>>(
    `SELECT $5::numeric + sum(requests) AS events, $6::numeric + sum(cost_nanos) AS nanos FROM usage_hour
     WHERE (tenant_id, hour) > ($1, $2::timestamptz) AND (tenant_id, hour) <= ($3, $4::timestamptz)
       AND tenant_id = $3`,
    [from.tenantId, from.hour, to.tenantId, to.hour, ...before],
  );
  return sums!;
}

const compared = (hours: string, tenants: string) => `
  SELECT tenant_id, coalesce(concat_ws(' ', h.events, h.cost_nanos), 'nothing') AS expected,
    coalesce(concat_ws(' ', t.events, t.cost_nanos), 'nothing') AS actual
  FROM (SELECT tenant_id, events, cost_nanos FROM tenant_sum WHERE ${tenants}) t
  FULL JOIN (
    SELECT tenant_id, sum(events) AS events, sum(cost_nanos) AS cost_nanos FROM (${hours}) AS parts GROUP BY 1
  ) h USING (tenant_id)
  WHERE (h.events, h.cost_nanos) IS DISTINCT FROM (t.events, t.cost_nanos)
  ORDER BY 1`;

/** `$1`, `$2`: after this tenant and hour. `$3`: before this tenant. `$4`, `$5`: sums of `$1` up to the hour `$2`. */
const TENANTS_SQL = compared(
  `SELECT tenant_id, requests AS events, cost_nanos FROM usage_hour
   WHERE (tenant_id, hour) > ($1, $2::timestamptz) AND ($3::text IS NULL OR tenant_id < $3)
   UNION ALL
   SELECT $1 COLLATE "C", $4::numeric, $5::numeric
   WHERE $1 <> '' AND ($3::text IS NULL OR $1 COLLATE "C" < $3)`,
  `tenant_id >= $1 AND ($3::text IS NULL OR tenant_id < $3)`,
);

/** Of one tenant, in one snapshot. Hours are read without their keys as far as they are folded, which are few rows. */
const TENANT_SQL = compared(
  `SELECT tenant_id, requests AS events, cost_nanos FROM model_hour
   WHERE tenant_id = $1 AND hour < (SELECT hours_until FROM usage_folded)
   UNION ALL
   SELECT tenant_id, requests, cost_nanos FROM usage_hour
   WHERE tenant_id = $1 AND hour >= (SELECT hours_until FROM usage_folded)`,
  'tenant_id = $1',
);
