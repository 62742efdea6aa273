import { UnavailableError } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import { logger, withTimeout } from '@tollgate/runtime';
import type { MonthSpent, ParsedBalanceUpdate } from '../admission-store';
import { tenantKeys } from './by-tenant';
import { amount, budgetChanges, nanos } from './json-arguments';
import { spentChanges } from './repair';
import type { TenantRegistry } from './tenant-registry';

/** The longest wait of a request for an unknown tenant. After it the request gets 503. */
const MAX_WAIT_MS = 2_000;
const MAX_RESTORES_AT_ONCE = 200;
/** The pause after a failure in the background. */
const TRY_AGAIN_MS = 10_000;

/** A tenant's state in the books. */
export interface TenantCredit {
  /** Includes every budget that was ever set. */
  update: ParsedBalanceUpdate;
  /**
   * For budgets: the current calendar month, or two months near the end of one, because the store uses its own clock.
   */
  spent: readonly MonthSpent[];
}

/**
 * Asks billing, and metering for budgets. Null: they know no such tenant, so it has no credit. Rejects when they do not
 * answer, in bounded time: until it ends, the tenant is not asked for again.
 */
export type AskForCredit = (tenantId: string) => Promise<TenantCredit | null>;

/**
 * Restores the credit of tenants in a store that lost it. Each tenant is requested once at a time. Requests wait for
 * MAX_WAIT_MS at most, and a later answer of the books counts for the next ones.
 */
export class CreditRestorer {
  private readonly underWay = new Map<string, Promise<void>>();
  private readonly failedAtMs = new Map<string, number>();

  constructor(
    private readonly link: RedisLink,
    private readonly registry: TenantRegistry,
    private readonly ask: AskForCredit,
    private readonly now: () => number | '',
  ) {}

  /** Rejects with UnavailableError when the books, or the store, do not answer in time. */
  restore(tenantId: string): Promise<void> {
    let restoring = this.underWay.get(tenantId);
    if (restoring) return restoring;
    if (this.underWay.size >= MAX_RESTORES_AT_ONCE)
      return Promise.reject(new UnavailableError('too many tenants wait for their credit'));
    const late = () => new UnavailableError(`the credit of ${tenantId} is not known in time`);
    const taking = this.askAndTake(tenantId).finally(() => this.underWay.delete(tenantId));
    restoring = withTimeout(MAX_WAIT_MS, taking, late);
    this.underWay.set(tenantId, restoring);
    return restoring;
  }

  /** For a tenant with a balance update: its first request then need not wait. */
  restoreInBackground(tenantId: string): void {
    if (this.underWay.has(tenantId) || Date.now() < (this.failedAtMs.get(tenantId) ?? 0) + TRY_AGAIN_MS) return;
    this.restore(tenantId).then(
      () => this.failedAtMs.delete(tenantId),
      (error: unknown) => {
        if (this.failedAtMs.size >= MAX_RESTORES_AT_ONCE) this.failedAtMs.clear();
        this.failedAtMs.set(tenantId, Date.now());
        logger('admission').warn(
          { err: error, tenantId },
          'asking for the credit of a tenant failed; its next balance update or request tries again',
        );
      },
    );
  }

  /**
   * 1. Begin the tenant's store epoch.
   * 2. Ask the books. However long they take, their answer counts.
   * 3. Take it, unless the store was emptied since step 1.
   */
  private async askAndTake(tenantId: string): Promise<void> {
    const keys = tenantKeys(tenantId);
    try {
      const epoch = (await this.link.one({ function: 'begin_restore', keys, args: [] })) as string;
      const credit = await this.ask(tenantId);
      const args = [this.now(), restoreArgument(credit), epoch];
      const taken = await this.link.one({ function: 'restore', keys, args });
      if (taken !== 1) throw new UnavailableError(`the store was emptied while the credit of ${tenantId} was asked`);
      // The registry lost this tenant too. From now on the tenant counts as known, so nobody would register it for a
      // minute.
      await this.registry.tellAgain(tenantId);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      throw Object.assign(new UnavailableError(`the credit of ${tenantId} is not available`), { cause: error });
    }
  }
}

/** The state of a tenant that the books do not know: version 0, so any balance update replaces it. */
function restoreArgument(credit: TenantCredit | null): string {
  if (!credit) return '[0,0,false,[],[],[]]';
  const { update, spent } = credit;
  return JSON.stringify([
    amount(update.version),
    nanos(update.balanceNanos),
    update.suspended,
    update.releases,
    spentChanges(spent),
    budgetChanges(update.budgets),
  ]);
}
