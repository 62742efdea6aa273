import { logCapped, logger } from '@tollgate/runtime';
import type { Connections } from './connections';

/** Holds named at a time. */
const MAX_NAMED = 20;
/** Pending holds that no sweep can end. They keep the credit of their tenants. `$1`: the time of a test, or null. */
const STUCK = `unconfirmed_since_ms IS NULL AND state = 'pending' AND deadline_ms <= now_us($1) / 1000
  AND NOT can_expire(hold)`;

export async function reportStuckHolds(connections: Connections, now: number | null): Promise<void> {
  const stuck = await connections.callInBackground({
    name: 'stuck_holds',
    text: `SELECT tenant_id, id FROM hold WHERE ${STUCK} LIMIT $2`,
    values: [now, MAX_NAMED],
  });
  const message =
    'a hold cannot expire, because no usage event can be made of it, and keeps its credit: tollgate tenant repair ' +
    'drops it';
  for (const [tenantId, holdId] of stuck) logCapped(logger('admission'), 'error', { tenantId, holdId }, message);
}

/** Returns their number. Nobody is charged for what they recorded. A repair then corrects the sums of the tenant. */
export async function dropStuckHolds(connections: Connections, tenantId: string, now: number | null): Promise<number> {
  const dropped = await connections.callInBackground({
    name: 'drop_stuck_holds',
    // Under the lock of the tenant: nobody else ends the hold meanwhile.
    text: `DELETE FROM hold
           WHERE tenant_id = $2 AND (SELECT true FROM lock_tenants(ARRAY[$2::text])) AND ${STUCK}
           RETURNING id`,
    values: [now, tenantId],
  });
  return dropped.length;
}
