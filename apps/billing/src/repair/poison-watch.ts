import type { AdmissionStore } from '@tollgate/admission';
import { Counter, delayUntilAborted, logger, metrics } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { capped, compareTenant, NEWS, type TenantView } from '../reconcile/compare';
import { Stores } from '../reconcile/stores';
import type { TenantRepairs } from './tenant-repairs';

/** A round begins so long after the last one began; with so many tenants that it takes longer, at once. */
export const ROUND_MS = 60_000;
/** Between two pages of 200 tenants, each of which reads all their holds. */
const PAGE_PAUSE_MS = 250;
/** Each takes the lock of a tenant's books: of more, the next round finds the rest. */
const MAX_LOOKED_INTO_A_ROUND = 1_000;
/** Tenants of which somebody asked for a look out of turn. */
const MAX_ASKED = 1_000;
/** News takes well under a second. */
const LOST_AFTER_MS = 60_000;

const poisoned = new Counter({
  name: 'tollgate_billing_poisoned_tenants_total',
  help: 'Tenants repaired because the books do not explain their state in the admission store, by what was found',
  labelNames: ['found'] as const,
  registers: [metrics],
});

const toldAgain = new Counter({
  name: 'tollgate_billing_news_told_again_total',
  help: 'Tenants whose news the admission store had lacked for a minute; it was sent again',
  registers: [metrics],
});

/**
 * Looks at each tenant about once a minute whether the admission store has of it what the books can have led to, and
 * repairs it where not: the books are the truth, and the log and the metric make it seen.
 *
 * A look costs a page of books and one of the store, without a lock. What differs there may be on its way; so it is
 * looked at again under the lock of the tenant's books, where nothing is (`poisonOf`), and only then is it believed. A
 * version that is below the books' for a minute is told again: the news of it is lost, or it is a forged one that
 * passes for old, with no more than the books had since.
 */
export class PoisonWatch {
  private readonly stores: Stores;
  private readonly ending = new AbortController();
  private readonly asked = new Set<string>();
  /** What the books had when a tenant was first seen behind them, and when that was. */
  private behind = new Map<string, { version: bigint; sinceMs: number }>();
  private lookingNow: Promise<void> = Promise.resolve();

  constructor(
    dataSource: DataSource,
    admission: AdmissionStore,
    private readonly repairs: TenantRepairs,
    private readonly lostAfterMs = LOST_AFTER_MS,
  ) {
    this.stores = new Stores(dataSource, admission);
  }

  /**
   * Of a tenant that has just changed, or whose store was said to be ahead: at once, in the background. Never rejects.
   */
  look(tenantId: string): void {
    if (this.ending.signal.aborted || this.asked.size >= MAX_ASKED || this.asked.has(tenantId)) return;
    this.asked.add(tenantId);
    this.lookingNow = this.lookingNow.then(async () => {
      this.asked.delete(tenantId);
      if (!this.ending.signal.aborted) await this.lookInto(tenantId);
    });
  }

  /** All tenants, once. Returns how many were repaired. */
  async round(): Promise<number> {
    const behind: typeof this.behind = new Map();
    const nowMs = performance.now();
    let repaired = 0;
    let lookedInto = 0;
    for (let after: string | undefined; ;) {
      const { ids, next } = await this.stores.nextTenants(after);
      for (const view of await this.stores.views(ids, after)) {
        const { tenantId } = view;
        const isBehind = view.snapshot !== undefined && view.snapshot.version < view.before.version;
        // What it has heard of since is no lost news, and the waiting begins anew.
        const seen = this.behind.get(tenantId);
        const still = isBehind && seen && view.snapshot!.version < seen.version ? seen : undefined;
        if (isBehind) behind.set(tenantId, still ?? { version: view.before.version, sinceMs: nowMs });
        const isLost = still !== undefined && nowMs - still.sinceMs >= this.lostAfterMs;
        const differs = compareTenant(view).some(({ check }) => check !== NEWS) || isAhead(view) || hasMore(view);
        if (!(view.snapshot && differs) && !isLost) continue;
        if (++lookedInto > MAX_LOOKED_INTO_A_ROUND) continue;
        if (await this.lookInto(tenantId, isLost ? still.version : undefined)) repaired++;
      }
      if (next === null || this.ending.signal.aborted) break;
      after = next;
      await delayUntilAborted(PAGE_PAUSE_MS, this.ending.signal);
    }
    this.behind = behind;
    return repaired;
  }

  /** Once all that was asked for has been looked at. */
  async settled(): Promise<void> {
    await this.lookingNow;
  }

  /** Finishes what is in hand. */
  async stop(): Promise<void> {
    this.ending.abort();
    await this.lookingNow;
  }

  /** Never rejects: one tenant keeps nobody from looking at the others. */
  private async lookInto(tenantId: string, heardOf?: bigint): Promise<boolean> {
    try {
      return await this.heal(tenantId, heardOf);
    } catch (error) {
      logger('billing').warn({ err: error, tenantId }, 'a tenant could not be looked at; the next round does');
      return false;
    }
  }

  /**
   * Repairs a tenant where the admission store has what the books do not give, before it returns. Whether it had.
   * Rejects when it could not look, or repair.
   */
  async heal(tenantId: string, heardOf?: bigint): Promise<boolean> {
    const healed = await this.repairs.heal(tenantId, heardOf);
    if (!healed) return false;
    const { poison: found, changes, droppedHolds } = healed;
    const log = { tenantId, found, changes, droppedHolds };
    if (found === 'behind') toldAgain.inc();
    else poisoned.inc({ found });
    if (found === 'behind')
      logger('billing').warn(log, 'the admission store had not heard of a tenant’s news: told again');
    else logger('billing').error(log, 'the admission store had what the books do not give: repaired from the books');
    return true;
  }
}

function isAhead({ snapshot, after }: TenantView): boolean {
  return snapshot !== undefined && snapshot.version > after.version;
}

/**
 * Of an older version, and more than the books have: a debit on its way, or forged. Usage on its way is settled there
 * still, and so is none.
 */
function hasMore({ snapshot, before, after }: TenantView): boolean {
  if (snapshot === undefined || snapshot.version >= before.version) return false;
  const nanos = capped(snapshot.balanceNanos + snapshot.withdrawnNanos) - snapshot.settledNanos;
  return nanos > before.balanceNanos && nanos > after.balanceNanos;
}
