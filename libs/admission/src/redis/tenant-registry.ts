import { slotOf, type Call, type RedisLink } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';

/** Spread over the shards of a cluster. Part of the data format: never change it. */
const REGISTRIES = 16;
/** The interval at which each process registers a tenant that it serves. */
const TELL_AGAIN_MS = 60_000;
/**
 * A tenant without holds that no process registered for this time is not swept any more. Far beyond TELL_AGAIN_MS,
 * because a process registers a tenant before it admits. The sweeping process measures it.
 */
const IDLE_AFTER_MS = 600_000;
const MAX_TENANTS_TOLD_AT_ONCE = 1_000;

/** A tenant's last registration. */
interface Registration {
  /** The score: a time by the clock of the process that registered. No other clock is compared with it. */
  at: string;
  /** When this process first saw it, by `performance.now()`. */
  seenMs: number;
}

/**
 * Lists all tenants, and those that must be swept: two sorted sets in each of REGISTRIES slots. A registry and its
 * tenants are in different slots, so they cannot change atomically. The order makes up for that. A process registers a
 * tenant before its first hold, and once a minute while it serves it. A tenant is removed from the active list only if
 * it has no holds and nobody has registered it for ten minutes: its registration is the one that the sweeping process
 * saw ten minutes ago. So a clock that is wrong hides no hold from the sweep. A lost registry is complete again a
 * minute later.
 */
export class TenantRegistry {
  private told = new Set<string>();
  private toldSinceMs = performance.now();
  private failing = false;
  /** By tenant, as of the last call of `active`. */
  private registrations = new Map<string, Registration>();

  /** `link` is the connection that requests wait for. */
  constructor(
    private readonly link: RedisLink,
    private readonly background: RedisLink,
  ) {}

  /**
   * Usually returns nothing to wait for, as all tenants were registered recently. Never rejects: the next call tries
   * again.
   */
  tell(tenantIds: Iterable<string>): Promise<void> | undefined {
    const nowMs = performance.now();
    if (nowMs - this.toldSinceMs > TELL_AGAIN_MS) {
      this.told = new Set();
      this.toldSinceMs = nowMs;
    }
    const missing = new Set<string>();
    for (const id of tenantIds) if (!this.told.has(id)) missing.add(id);
    return missing.size === 0 ? undefined : this.write([...missing]);
  }

  /** The store did not know the tenant, so the registry may not know it either. */
  async tellAgain(tenantId: string): Promise<void> {
    this.told.delete(tenantId);
    await this.tell([tenantId]);
  }

  /**
   * The tenants to sweep, from every registry. The order of registries is random, so that none is always last. Rejects
   * when no registry answers.
   */
  async active(): Promise<string[]> {
    const first = Math.floor(Math.random() * REGISTRIES);
    const shards = Array.from({ length: REGISTRIES }, (_, i) => (first + i) % REGISTRIES);
    const calls = shards.map((n): Call => ({ command: 'zrange', keys: [activeKey(n)], args: [0, -1, 'WITHSCORES'] }));
    const replies = answered(await this.background.call(calls)) as string[][];
    const nowMs = performance.now();
    const registrations = new Map<string, Registration>();
    for (const reply of replies)
      for (let i = 0; i < reply.length; i += 2) {
        const [id, at] = [reply[i]!, reply[i + 1]!];
        const known = this.registrations.get(id);
        registrations.set(id, known?.at === at ? known : { at, seenMs: nowMs });
      }
    this.registrations = registrations;
    return [...registrations.keys()];
  }

  /**
   * Removes from the active list the tenants among these that nobody has registered for a long time. They had no holds
   * after the last call of `active`.
   */
  async forgetIdle(tenantIds: readonly string[]): Promise<void> {
    const beforeMs = performance.now() - IDLE_AFTER_MS;
    const isOld = (id: string) => (this.registrations.get(id)?.seenMs ?? Infinity) <= beforeMs;
    const calls = [...byRegistry(tenantIds.filter(isOld))].map(([n, ids]): Call => {
      const args = ids.flatMap((id) => [this.registrations.get(id)!.at, id]);
      return { function: 'forget_idle', keys: [activeKey(n)], args };
    });
    if (calls.length > 0) await this.background.call(calls);
  }

  /** Ids after `after`, ascending, at most `limit`. Rejects when a registry does not answer. */
  async page(after: string | undefined, limit: number): Promise<string[]> {
    const from = after === undefined ? '-' : `(${after}`;
    const replies = await this.background.call(
      Array.from({ length: REGISTRIES }, (_, n): Call => {
        return { command: 'zrangebylex', keys: [tenantsKey(n)], args: [from, '+', 'LIMIT', 0, limit] };
      }),
    );
    for (const reply of replies) if (reply instanceof Error) throw reply;
    return (replies as string[][]).flat().sort().slice(0, limit);
  }

  private async write(tenantIds: readonly string[]): Promise<void> {
    const now = Date.now();
    for (let from = 0; from < tenantIds.length; from += MAX_TENANTS_TOLD_AT_ONCE) {
      const batch = tenantIds.slice(from, from + MAX_TENANTS_TOLD_AT_ONCE);
      const registries = [...byRegistry(batch)];
      const replies = await this.link.call(
        registries.flatMap(([n, ids]): Call[] => [
          { command: 'zadd', keys: [tenantsKey(n)], args: ids.flatMap((id) => [0, id]) },
          { command: 'zadd', keys: [activeKey(n)], args: ids.flatMap((id) => [now, id]) },
        ]),
      );
      let failed: Error | undefined;
      for (const [i, [, ids]] of registries.entries()) {
        const error = [replies[2 * i], replies[2 * i + 1]].find((reply): reply is Error => reply instanceof Error);
        failed ??= error;
        if (!error) for (const id of ids) this.told.add(id);
      }
      if (failed && !this.failing) logger('admission').warn({ err: failed }, 'registering tenants failed; retrying');
      this.failing = failed !== undefined;
    }
  }
}

function byRegistry(tenantIds: readonly string[]): Map<number, string[]> {
  const shards = new Map<number, string[]>();
  for (const id of tenantIds) {
    const n = slotOf(id) % REGISTRIES;
    const ids = shards.get(n);
    if (ids) ids.push(id);
    else shards.set(n, [id]);
  }
  return shards;
}

/** The replies of the registries that answered. Rejects when none did. */
function answered(replies: readonly unknown[]): unknown[] {
  const good = replies.filter((reply) => !(reply instanceof Error));
  if (good.length === 0) throw replies[0];
  return good;
}

const activeKey = (n: number) => `tga:{registry${n}}:active`;
const tenantsKey = (n: number) => `tga:{registry${n}}:tenants`;
