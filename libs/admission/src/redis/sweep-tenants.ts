import type { UsageEvent } from '@tollgate/contracts';
import type { Call, RedisLink } from '@tollgate/redis';
import type { SweepOptions } from '../admission-store';
import { tenantKeys } from './by-tenant';
import type { TenantRegistry } from './tenant-registry';

/** One round trip: a tenant with nothing to do costs Redis some 5 µs. */
const MAX_TENANTS_PER_CALL = 200;

/**
 * Goes through the active tenants until as many holds of both kinds were found as were asked for. A shard that does not answer is passed by; rejects when nothing was found and
 * one did not answer. Records that were handed out by an answer that got lost are handed out again after the waiting time.
 */
export async function sweepTenants(
  link: RedisLink,
  registry: TenantRegistry,
  { limit, confirmAfterMs }: SweepOptions,
  now: number | '',
): Promise<UsageEvent[]> {
  const events: UsageEvent[] = [];
  const idle: string[] = [];
  let expired = 0;
  let owed = 0;
  let failure: Error | undefined;
  // Those that gave all that they might are asked again behind the others: so a busy tenant does not keep them waiting.
  const queue = (await registry.active()).flat();
  for (
    let left = [limit, limit];
    queue.length > 0 && (left[0]! > 0 || left[1]! > 0);
    left = [limit - expired, limit - owed]
  ) {
    const batch = queue.splice(0, Math.min(MAX_TENANTS_PER_CALL, ...left.filter((most) => most > 0)));
    const [mostExpired, mostOwed] = left.map((most) => Math.floor(most / batch.length)) as [number, number];
    const args = [now, mostExpired, mostOwed, confirmAfterMs];
    const replies = await link.call(batch.map((id): Call => ({ function: 'sweep', keys: tenantKeys(id), args })));
    for (const [i, reply] of replies.entries()) {
      if (reply instanceof Error) {
        failure ??= reply;
        continue;
      }
      const [justExpired, hasHolds, records] = reply as [number, number, string[]];
      const justOwed = records.length - justExpired;
      expired += justExpired;
      owed += justOwed;
      for (const record of records) events.push(JSON.parse(record) as UsageEvent);
      if (hasHolds === 0) idle.push(batch[i]!);
      else if ((justExpired > 0 && justExpired === mostExpired) || (justOwed > 0 && justOwed === mostOwed))
        queue.push(batch[i]!);
    }
  }
  if (failure && events.length === 0) throw failure;
  if (idle.length > 0) await registry.forgetIdle(idle);
  return events;
}
