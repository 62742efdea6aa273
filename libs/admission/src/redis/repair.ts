import type { RedisLink } from '@tollgate/redis';
import type { Repair, RepairResult } from '../admission-store';
import { monthOf } from '../amounts';
import { tenantKeys } from './by-tenant';
import { amount, budgetChanges, nanos } from './json-arguments';

/** Less than the caller waits for the call (BACKGROUND_TIMEOUT_MS): it holds the lock of the books until then. */
const MAX_REPAIR_MS = 5_000;

/**
 * Calls lua/15_repair.lua. Rejects when the tenant's shard does not answer. Then the repair is not done later either:
 * the books may have a newer version by then.
 */
export async function callRepair(link: RedisLink, repair: Repair, now: number | ''): Promise<RepairResult> {
  const { tenantId, version, balanceNanos, suspended, spent, budgets, releases } = repair;
  const keys = tenantKeys(tenantId);
  const until = await link.one({ function: 'repair_until', keys, args: [MAX_REPAIR_MS] });
  const droppedHolds = await link.one({
    function: 'repair',
    keys,
    args: [
      now,
      until as string,
      JSON.stringify([
        amount(version),
        nanos(balanceNanos),
        suspended,
        spentChanges(spent),
        budgetChanges(budgets),
        releases,
      ]),
    ],
  });
  return { droppedHolds: Number(droppedHolds) };
}

/** What was spent, as `restore` and `repair` of the library read it. */
export function spentChanges(spent: Repair['spent']): unknown[] {
  return spent.map(({ month, tenantNanos, keys }) => [
    monthOf(month),
    nanos(tenantNanos),
    keys.map(({ keyId, nanos: spentNanos }) => [keyId, nanos(spentNanos)]),
  ]);
}
