import type { Call, RedisLink } from '@tollgate/redis';
import type { Snapshot } from '../admission-store';
import { tenantKeys } from './by-tenant';
import type { TenantRegistry } from './tenant-registry';

/** Each snapshot reads all holds of a tenant. */
const MAX_TENANTS_PER_CALL = 50;

/** PostgreSQL stores no NUL in a text, so the books have no such tenant, and could not be asked for it. */
const isStorable = (tenantId: string) => !tenantId.includes('\0');

/** Tenants ascending. Each is read at one instant, but not all at the same. Rejects when a shard does not answer. */
export async function readSnapshots(
  link: RedisLink,
  registry: TenantRegistry,
  { tenantId, after, limit }: { tenantId?: string; after?: string; limit: number },
): Promise<Snapshot[]> {
  if (tenantId !== undefined) {
    const known = after === undefined || tenantId > after;
    return known ? (await readAll(link, [tenantId])).slice(0, limit) : [];
  }
  const snapshots: Snapshot[] = [];
  for (let last = after; ;) {
    const wanted = limit - snapshots.length;
    const ids = wanted > 0 ? await registry.page(last, wanted) : [];
    snapshots.push(...(await readAll(link, ids)));
    // A registry may name tenants without any stored state.
    if (ids.length < wanted || wanted <= 0) return snapshots;
    last = ids.at(-1);
  }
}

async function readAll(link: RedisLink, tenantIds: readonly string[]): Promise<Snapshot[]> {
  const ids = tenantIds.filter(isStorable);
  const snapshots: Snapshot[] = [];
  for (let from = 0; from < ids.length; from += MAX_TENANTS_PER_CALL) {
    const batch = ids.slice(from, from + MAX_TENANTS_PER_CALL);
    const replies = await link.call(
      batch.map((id): Call => ({ function: 'snapshot', keys: tenantKeys(id), args: [] })),
    );
    for (const [i, reply] of replies.entries()) {
      if (reply instanceof Error) throw reply;
      if (reply !== null) snapshots.push(read(batch[i]!, reply as (string | number | null)[]));
    }
  }
  return snapshots;
}

const UNREADABLE = {
  version: 0n,
  balanceNanos: 0n,
  settledNanos: 0n,
  pendingNanos: 0n,
  pendingHolds: 0,
  settledHolds: 0,
  holdRowsPendingNanos: 0n,
  holdRowsSettledNanos: 0n,
  oldestSettledId: null,
  suspended: false,
  inFlight: 0n,
  withdrawnNanos: 0n,
};

function read(tenantId: string, v: readonly (string | number | null)[]): Snapshot {
  if (v[0] === 'unreadable') return { ...UNREADABLE, tenantId, unreadable: String(v[1]) };
  try {
    return readable(tenantId, v);
  } catch (error) {
    // Not a form of number that this store writes.
    return { ...UNREADABLE, tenantId, unreadable: (error as Error).message };
  }
}

function readable(tenantId: string, v: readonly (string | number | null)[]): Snapshot {
  return {
    tenantId,
    version: BigInt(v[0]!),
    balanceNanos: BigInt(v[1]!),
    settledNanos: BigInt(v[2]!),
    pendingNanos: BigInt(v[3]!),
    pendingHolds: v[4] as number,
    settledHolds: v[5] as number,
    holdRowsPendingNanos: BigInt(v[6]!),
    holdRowsSettledNanos: BigInt(v[7]!),
    oldestSettledId: v[8] as string | null,
    suspended: v[9] === '1',
    // An earlier release of the functions does not return it.
    inFlight: BigInt(v[10] ?? v[4]!),
    withdrawnNanos: BigInt(v[11] ?? 0),
  };
}
