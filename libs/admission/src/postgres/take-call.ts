import { callIntervalUs, type ManagementCall, waitMs } from '../operations/call-rate';
import type { Connections } from './connections';

/** Takes a call from the bucket, if it has one. A clock that went back costs a minute at most. */
const TAKE = `
  INSERT INTO call_rate AS r (tenant_id, token_id, full_at_us) VALUES ($2, $3, now_us($1) + $4)
  ON CONFLICT (tenant_id, token_id) DO UPDATE
    SET full_at_us = greatest(r.full_at_us, now_us($1)) + $4
    WHERE greatest(r.full_at_us, now_us($1)) + $4 <= now_us($1) + 60000000
  RETURNING 0`;

/**
 * In how many microseconds there is a call. A separate statement, because TAKE sees the bucket as it was when it
 * began, without calls that ran at the same time. After a clock went back, the bucket fills from now on.
 * Otherwise each call would start it again.
 */
const WAIT = `
  WITH filling AS (
    UPDATE call_rate SET full_at_us = now_us($1) + 60000000
    WHERE tenant_id = $2 AND token_id = $3 AND full_at_us > now_us($1) + 60000000
  )
  SELECT greatest(1, least(full_at_us - us, 60000000) + $4 - 60000000) FROM call_rate, (SELECT now_us($1) AS us) AS now
  WHERE tenant_id = $2 AND token_id = $3`;

export async function takeCall(connections: Connections, call: ManagementCall, nowMs: number | null): Promise<number> {
  const values = [nowMs, call.tenantId, call.tokenId, callIntervalUs(call)];
  const [taken] = await connections.call({ name: 'take_call', text: TAKE, values });
  if (taken) return 0;
  const [wait] = await connections.call({ name: 'wait_for_call', text: WAIT, values });
  return waitMs(Number(wait?.[0] ?? 1));
}
