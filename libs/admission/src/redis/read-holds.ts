import type { UsageEvent } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import type { HoldsQuery, HoldView } from '../admission-store';
import { tenantKeys } from './by-tenant';

/** A tenant's holds, ascending by id. Rejects when its shard does not answer. */
export async function readHolds(link: RedisLink, query: HoldsQuery, now: number | ''): Promise<HoldView[]> {
  const { tenantId, after = '', limit } = query;
  const [reply] = await link.call([{ function: 'holds', keys: tenantKeys(tenantId), args: [now, after, limit] }]);
  if (reply instanceof Error) throw reply;
  const [nowMs, ...values] = reply as string[];
  const holds: HoldView[] = [];
  for (let i = 0; i < values.length; i += 4) {
    const [id, state, nanos, since] = values.slice(i, i + 4) as [string, HoldView['state'], string, string];
    const sinceMs = state === 'pending' ? Number(since) : Date.parse((JSON.parse(since) as UsageEvent).endedAt);
    holds.push({ id, state, nanos: BigInt(nanos), quietMs: Number(nowMs) - sinceMs });
  }
  return holds;
}
