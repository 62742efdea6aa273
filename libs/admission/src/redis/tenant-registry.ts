import { slotOf, type Call, type RedisLink } from '@tollgate/redis';
import { logger } from '@tollgate/runtime';

/** Spread over the shards of a cluster. Part of the form of the data: never change it. */
const REGISTRIES = 16;
/** Each process tells so often that it serves a tenant. */
const TELL_AGAIN_MS = 60_000;
/**
 * A tenant without holds of which no process has told for so long is not swept any more. Far beyond TELL_AGAIN_MS, as a
 * process tells before it admits.
 */
const IDLE_AFTER_MS = 600_000;
const MAX_TENANTS_TOLD_AT_ONCE = 1_000;

/**
 * Which tenants there are, and which have to be swept: two sorted sets in each of REGISTRIES slots. A registry and its
 * tenants lie in different slots, so they cannot change together; the order makes up for that: a process tells of a
 * tenant before its first hold and once a minute while it serves it, and only a tenant of which nobody has told for ten
 * times as long, and which has no holds, is taken off the list of the active. What a lost registry forgets, it has
 * again a minute later.
 */
export class TenantRegistry {
  private told = new Set<string>();
  private toldSinceMs = Date.now();
  private failing = false;

  /** `link` is what requests wait for. */
  constructor(
    private readonly link: RedisLink,
    private readonly background: RedisLink,
  ) {}

  /** Nothing to wait for when all of them were told of lately, as a rule. Never rejects: the next call tells again. */
  tell(tenantIds: Iterable<string>): Promise<void> | undefined {
    const nowMs = Date.now();
    if (nowMs - this.toldSinceMs > TELL_AGAIN_MS) {
      this.told = new Set();
      this.toldSinceMs = nowMs;
    }
    const missing = new Set<string>();
    for (const id of tenantIds) if (!this.told.has(id)) missing.add(id);
    return missing.size === 0 ? undefined : this.write([...missing], nowMs);
  }

  /** The store did not know it, so the registry may not either. */
  async tellAgain(tenantId: string): Promise<void> {
    this.told.delete(tenantId);
    await this.tell([tenantId]);
  }

  /**
   * Of every registry, the tenants to sweep; in a random order of registries, so that none is always the last. Rejects
   * when no registry answers.
   */
  async active(): Promise<string[][]> {
    const first = Math.floor(Math.random() * REGISTRIES);
    const shards = Array.from({ length: REGISTRIES }, (_, i) => (first + i) % REGISTRIES);
    const calls = shards.map((n): Call => ({ command: 'zrange', keys: [activeKey(n)], args: [0, -1] }));
    return answered(await this.background.call(calls)) as string[][];
  }

  /** Takes those of which nobody has told for a long time off the list of the active. They have no holds. */
  async forgetIdle(tenantIds: readonly string[]): Promise<void> {
    const beforeMs = Date.now() - IDLE_AFTER_MS;
    const calls = [...byRegistry(tenantIds)].map(([n, ids]): Call => {
      return { function: 'forget_idle', keys: [activeKey(n)], args: [beforeMs, ...ids] };
    });
    await this.background.call(calls);
  }

  /** Ids after `after`, ascending; at most `limit`. Rejects when a registry does not answer. */
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

  private async write(tenantIds: readonly string[], nowMs: number): Promise<void> {
    for (let from = 0; from < tenantIds.length; from += MAX_TENANTS_TOLD_AT_ONCE) {
      const batch = tenantIds.slice(from, from + MAX_TENANTS_TOLD_AT_ONCE);
      const registries = [...byRegistry(batch)];
      const replies = await this.link.call(
        registries.flatMap(([n, ids]): Call[] => [
          { command: 'zadd', keys: [tenantsKey(n)], args: ids.flatMap((id) => [0, id]) },
          { command: 'zadd', keys: [activeKey(n)], args: ids.flatMap((id) => [nowMs, id]) },
        ]),
      );
      let failed: Error | undefined;
      for (const [i, [, ids]] of registries.entries()) {
        const error = [replies[2 * i], replies[2 * i + 1]].find((reply): reply is Error => reply instanceof Error);
        failed ??= error;
        if (!error) for (const id of ids) this.told.add(id);
      }
      if (failed && !this.failing) logger('admission').warn({ err: failed }, 'tenants were not registered; trying on');
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

/** Those that answered; rejects when none did. */
function answered(replies: readonly unknown[]): unknown[] {
  const good = replies.filter((reply) => !(reply instanceof Error));
  if (good.length === 0) throw replies[0];
  return good;
}

const activeKey = (n: number) => `tga:{registry${n}}:active`;
const tenantsKey = (n: number) => `tga:{registry${n}}:tenants`;
