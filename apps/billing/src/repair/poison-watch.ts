import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { Counter, delayUntilAborted, logger, metrics } from '@tollgate/runtime';
import { BILLING_OPTIONS } from '../options';
import { capped, compareTenant, BALANCE_UPDATE, type TenantView } from '../reconcile/compare';
import { Stores } from '../reconcile/stores';
import { TenantRepairs } from './tenant-repairs';

/** Time from the start of one round to the next. If a round takes longer, the next one starts at once. */
export const ROUND_MS = 60_000;
/** Between two pages of 200 tenants, because each page reads all their holds. */
const PAGE_PAUSE_MS = 250;
/** Each takes the lock of a tenant's books. The next round finds any others. */
const MAX_LOOKED_INTO_A_ROUND = 1_000;
/** Tenants with a requested look out of turn. */
const MAX_ASKED = 1_000;
/** An update takes well under a second. */
const LOST_AFTER_MS = 60_000;

const poisoned = new Counter({
  name: 'tollgate_billing_poisoned_tenants_total',
  help: 'Tenants repaired because the books do not explain their state in the admission store, by finding',
  labelNames: ['found'] as const,
  registers: [metrics],
});

const resent = new Counter({
  name: 'tollgate_billing_balance_updates_resent_total',
  help: 'Tenants whose balance update the admission store had lacked for a minute; it was sent again',
  registers: [metrics],
});

/**
 * Checks about once a minute, for each tenant, that the books can have led to its state in the admission store, and
 * repairs the state if not. The books are the truth. The log and the metric show each repair.
 *
 * A look costs a page of books and one of the store, without a lock. A difference may be an update on its way. So the
 * watch looks again under the lock of the tenant's books, where no update can be on its way (`poisonOf`), and believes
 * only this look. If the store stays below the version of the books for a minute, the update is sent again: it was
 * lost, or the state is forged and passes for an old one, with no more than the books had since.
 */
@Injectable()
export class PoisonWatch implements BeforeApplicationShutdown {
  private readonly ending = new AbortController();
  private readonly asked = new Set<string>();
  /** The version of the books when the tenant was first seen behind them, and when that was. */
  private behind = new Map<string, { version: bigint; sinceMs: number }>();
  private lookingNow: Promise<void> = Promise.resolve();

  constructor(
    private readonly stores: Stores,
    private readonly repairs: TenantRepairs,
    /** `watchEveryMs`: null turns the watch off; it then repairs nothing. */
    @Inject(BILLING_OPTIONS) private readonly options: { watchEveryMs: number | null; lostAfterMs?: number },
  ) {}

  /**
   * Looks at once, in the background, at a tenant that has just changed or whose store seems to be ahead. Never
   * rejects.
   */
  look(tenantId: string): void {
    if (this.isOff || this.ending.signal.aborted || this.asked.size >= MAX_ASKED || this.asked.has(tenantId)) return;
    this.asked.add(tenantId);
    this.lookingNow = this.lookingNow.then(async () => {
      this.asked.delete(tenantId);
      if (!this.ending.signal.aborted) await this.lookInto(tenantId);
    });
  }

  /** Looks at all tenants once, or until `ending` is aborted. Returns how many were repaired. */
  async round(ending: AbortSignal = this.ending.signal): Promise<number> {
    const behind: typeof this.behind = new Map();
    const nowMs = performance.now();
    let repaired = 0;
    let lookedInto = 0;
    for (let after: string | undefined; ;) {
      const { ids, next } = await this.stores.nextTenants(after);
      for (const view of await this.stores.views(ids, after)) {
        const lost = this.lostVersion(view, behind, nowMs);
        if (lost === undefined && !differs(view)) continue;
        if (++lookedInto > MAX_LOOKED_INTO_A_ROUND) continue;
        if (await this.lookInto(view.tenantId, lost)) repaired++;
      }
      if (next === null || ending.aborted) break;
      after = next;
      await delayUntilAborted(PAGE_PAUSE_MS, ending);
    }
    this.behind = behind;
    return repaired;
  }

  /** Resolves once all requested looks are done. */
  async settled(): Promise<void> {
    await this.lookingNow;
  }

  /** Waits for the looks in progress. */
  async beforeApplicationShutdown(): Promise<void> {
    this.ending.abort();
    await this.lookingNow;
  }

  private get isOff(): boolean {
    return this.options.watchEveryMs === null;
  }

  /**
   * The version of the books that the store should have had for a minute, if there is one. Notes in `behind` since when
   * the store has been below the version of the books.
   */
  private lostVersion(
    { tenantId, snapshot, before }: TenantView,
    behind: typeof this.behind,
    nowMs: number,
  ): bigint | undefined {
    if (!snapshot || snapshot.version >= before.version) return undefined;
    const seen = this.behind.get(tenantId);
    // Otherwise the store has made progress since, so no update is lost, and the waiting starts again.
    const isStill = seen !== undefined && snapshot.version < seen.version;
    behind.set(tenantId, isStill ? seen : { version: before.version, sinceMs: nowMs });
    const { lostAfterMs = LOST_AFTER_MS } = this.options;
    return isStill && nowMs - seen.sinceMs >= lostAfterMs ? seen.version : undefined;
  }

  /** Never rejects: one tenant does not keep the watch from the others. */
  private async lookInto(tenantId: string, heardOf?: bigint): Promise<boolean> {
    try {
      return await this.heal(tenantId, heardOf);
    } catch (error) {
      logger('billing').warn({ err: error, tenantId }, 'a tenant could not be checked; the next round will check it');
      return false;
    }
  }

  /**
   * Repairs a tenant whose state in the admission store the books do not explain, before it returns. Returns whether it
   * did. Rejects when it could not look or repair.
   */
  async heal(tenantId: string, heardOf?: bigint): Promise<boolean> {
    const healed = this.isOff ? null : await this.repairs.heal(tenantId, heardOf);
    if (!healed) return false;
    const { poison: found, changes, droppedHolds } = healed;
    const log = { tenantId, found, changes, droppedHolds };
    if (found === 'behind') resent.inc();
    else poisoned.inc({ found });
    if (found === 'behind')
      logger('billing').warn(log, 'the admission store had missed a tenant’s balance update: sent again');
    else
      logger('billing').error(
        log,
        'a tenant’s state in the admission store did not follow from the books: repaired from the books',
      );
    return true;
  }
}

/** Whether the state in the store, if there is one, differs by more than an update that may be on its way. */
function differs(view: TenantView): boolean {
  if (!view.snapshot) return false;
  return compareTenant(view).some(({ check }) => check !== BALANCE_UPDATE) || isAhead(view) || hasMore(view);
}

function isAhead({ snapshot, after }: TenantView): boolean {
  return snapshot !== undefined && snapshot.version > after.version;
}

/**
 * The state has an older version and more than the books: a debit on its way, or a forgery. Usage on its way does not
 * count, because it is still settled there.
 */
function hasMore({ snapshot, before, after }: TenantView): boolean {
  if (snapshot === undefined || snapshot.version >= before.version) return false;
  const nanos = capped(snapshot.balanceNanos + snapshot.withdrawnNanos) - snapshot.settledNanos;
  return nanos > capped(before.balanceNanos) && nanos > capped(after.balanceNanos);
}
