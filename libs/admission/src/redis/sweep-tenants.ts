import { UnavailableError, type UsageEvent } from '@tollgate/contracts';
import type { Call, RedisLink } from '@tollgate/redis';
import { logCapped, logger } from '@tollgate/runtime';
import { holds } from '../admission-metrics';
import type { SweepOptions } from '../admission-store';
import { sweptEvents } from '../swept-records';
import { sweepKeys } from './by-tenant';
import type { TenantRegistry } from './tenant-registry';

/** One round trip. A tenant with nothing to do costs Redis some 5 µs. */
const MAX_TENANTS_PER_CALL = 200;

/**
 * Goes through the active tenants until the requested number of holds of both kinds was found. Skips a shard that does
 * not answer. Rejects when nothing was found and a shard did not answer. Records in a lost reply are handed out again
 * after the waiting time. A tenant whose holds cannot be read is logged and skipped, until it is repaired.
 */
export async function sweepTenants(
  link: RedisLink,
  registry: TenantRegistry,
  { limit, confirmAfterMs }: SweepOptions,
  now: number | '',
): Promise<UsageEvent[]> {
  const events: UsageEvent[] = [];
  const idle: string[] = [];
  const left = { expired: limit, owed: limit };
  let failure: Error | undefined;
  const counts = new Map<string, { pending: number; settled: number }>();
  // Tenants that reached their limit are asked again after the others, so a busy tenant does not delay the rest.
  const queue = await registry.active();
  while (queue.length > 0 && (left.expired > 0 || left.owed > 0)) {
    const batch = queue.splice(0, Math.min(MAX_TENANTS_PER_CALL, ...Object.values(left).filter((most) => most > 0)));
    const mostExpired = Math.floor(left.expired / batch.length);
    const mostOwed = Math.floor(left.owed / batch.length);
    const args = [now, mostExpired, mostOwed, confirmAfterMs];
    const replies = await link.call(batch.map((id): Call => ({ function: 'sweep', keys: sweepKeys(id), args })));
    for (const [i, reply] of replies.entries()) {
      if (reply instanceof UnavailableError) {
        failure ??= reply;
        continue;
      }
      if (reply instanceof Error) {
        reportUnreadable(batch[i]!, reply);
        continue;
      }
      const [justExpired, pending, settled, records] = reply as [number, number, number, unknown[]];
      counts.set(batch[i]!, { pending, settled });
      const justOwed = records.length - justExpired;
      left.expired -= justExpired;
      left.owed -= justOwed;
      events.push(...sweptEvents(records, batch[i]));
      if (pending + settled === 0) idle.push(batch[i]!);
      else if ((justExpired > 0 && justExpired === mostExpired) || (justOwed > 0 && justOwed === mostOwed))
        queue.push(batch[i]!);
    }
  }
  // Over all tenants or not at all: a partial sum would look like holds that ended.
  if (!failure && queue.length === 0) report([...counts.values()]);
  if (failure && events.length === 0) throw failure;
  if (idle.length > 0) await registry.forgetIdle(idle);
  return events;
}

/** This library did not write what is stored. */
function reportUnreadable(tenantId: string, err: Error): void {
  const message =
    'the holds of a tenant cannot be read, and are not swept: tollgate tenant repair drops unreadable ones';
  logCapped(logger('admission'), 'error', { err, tenantId }, message);
}

function report(counts: readonly { pending: number; settled: number }[]): void {
  holds.set(
    { state: 'pending' },
    counts.reduce((sum, { pending }) => sum + pending, 0),
  );
  holds.set(
    { state: 'settled' },
    counts.reduce((sum, { settled }) => sum + settled, 0),
  );
}
