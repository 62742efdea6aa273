import { callIntervalUs, type ManagementCall, waitMs } from '../call-rate';
import type { Connections } from './connections';

/**
 * Takes a call from the bucket, or says in how many microseconds there is one. A clock that went back costs a minute at
 * most.
 */
const TAKE = `
  WITH now AS (SELECT now_us($1) AS us), taken AS (
    INSERT INTO call_rate AS r (tenant_id, token_id, full_at_us) SELECT $2, $3, us + $4 FROM now
    ON CONFLICT (tenant_id, token_id) DO UPDATE
      SET full_at_us = least(greatest(r.full_at_us, now_us($1)), now_us($1) + 60000000) + $4
      WHERE least(greatest(r.full_at_us, now_us($1)), now_us($1) + 60000000) + $4 <= now_us($1) + 60000000
    RETURNING 0)
  SELECT CASE WHEN EXISTS (SELECT FROM taken) THEN 0 ELSE greatest(1, (
    SELECT least(full_at_us - us, 60000000) + $4 - 60000000 FROM call_rate, now
    WHERE tenant_id = $2 AND token_id = $3)) END`;

export async function takeCall(connections: Connections, call: ManagementCall, nowMs: number | null): Promise<number> {
  const values = [nowMs, call.tenantId, call.tokenId, callIntervalUs(call)];
  const [row] = await connections.call({ name: 'take_call', text: TAKE, values });
  return waitMs(Number(row![0]));
}
