import { runningHold, type HoldsQuery, type HoldView } from '../operations/hold-view';
import { endedMs } from '../swept-records';
import type { Connections } from './connections';

/** A tenant's holds, ascending by id. */
export async function readHolds(
  connections: Connections,
  { tenantId, after, limit, withRunning = false }: HoldsQuery,
  now: number | null,
): Promise<HoldView[]> {
  const rows = await connections.callInBackground({
    name: 'holds',
    text: `SELECT id, state, coalesce(cost_nanos, hold_nanos),
                  now_us($1) / 1000, CASE state WHEN 'pending' THEN progressed_ms::text ELSE record::text END,
                  CASE WHEN $5::boolean AND state = 'pending' THEN record::text END, delivered::text
           FROM hold WHERE tenant_id = $2 AND id > $3 ORDER BY id LIMIT $4`,
    values: [now, tenantId, after ?? '', limit, withRunning],
  });
  return rows.map(([id, state, nanos, nowMs, since, draft, delivered]) => ({
    id: id!,
    state: state as HoldView['state'],
    nanos: BigInt(nanos!),
    quietMs: Number(nowMs) - (state === 'pending' ? Number(since) : endedMs(since)),
    ...(draft != null && { running: runningHold(draft, delivered ?? null) }),
  }));
}
