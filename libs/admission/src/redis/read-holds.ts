import type { RedisLink } from '@tollgate/redis';
import { runningHold, type HoldsQuery, type HoldView } from '../operations/hold-view';
import { endedMs } from '../swept-records';
import { tenantKeys } from './by-tenant';

/** Empty: not asked for, or there is none. */
type Fields = [id: string, state: HoldView['state'], nanos: string, since: string, draft: string, delivered: string];

/** A tenant's holds, ascending by id. Rejects when its shard does not answer. */
export async function readHolds(link: RedisLink, query: HoldsQuery, now: number | ''): Promise<HoldView[]> {
  const { tenantId, after = '', limit, withRunning = false } = query;
  const [reply] = await link.call([
    { function: 'holds', keys: tenantKeys(tenantId), args: [now, after, limit, withRunning ? 1 : 0] },
  ]);
  if (reply instanceof Error) throw reply;
  const [nowMs, ...values] = reply as string[];
  const holds: HoldView[] = [];
  for (let i = 0; i < values.length; i += 6) {
    const [id, state, nanos, since, draft, delivered] = values.slice(i, i + 6) as Fields;
    const sinceMs = state === 'pending' ? Number(since) : endedMs(since);
    const running = draft !== '' && { running: runningHold(draft, delivered === '' ? null : delivered) };
    holds.push({ id, state, nanos: BigInt(nanos), quietMs: Number(nowMs) - sinceMs, ...running });
  }
  return holds;
}
