import type { RedisLink } from '@tollgate/redis';
import type { Repair, RepairResult } from '../admission-store';
import { monthOf } from '../amounts';
import { tenantKeys } from './by-tenant';
import { amount, budgetChanges, nanos } from './json-arguments';

/** Calls lua/15_repair.lua. Rejects when the tenant's shard does not answer. */
export async function callRepair(link: RedisLink, repair: Repair, now: number | ''): Promise<RepairResult> {
  const { tenantId, version, balanceNanos, suspended, spent, budgets, releases } = repair;
  const droppedHolds = await link.one({
    function: 'repair',
    keys: tenantKeys(tenantId),
    args: [
      now,
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
