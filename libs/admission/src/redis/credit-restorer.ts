import { UnavailableError } from '@tollgate/contracts';
import type { RedisLink } from '@tollgate/redis';
import { logger, withTimeout } from '@tollgate/runtime';
import type { MonthSpent, ParsedBalanceUpdate } from '../admission-store';
import { tenantKeys } from './by-tenant';
import { amount, budgetChanges, nanos } from './json-arguments';
import { spentChanges } from './repair';
import type { TenantRegistry } from './tenant-registry';

/** What a request of a tenant that the store does not know waits at most before it is refused with 503. */
const MAX_WAIT_MS = 2_000;
const MAX_RESTORES_AT_ONCE = 200;
/** After a failure in the background. */
const TRY_AGAIN_MS = 10_000;

/** What the books have of a tenant. */
export interface TenantCredit {
  /** With every budget that was ever set. */
  news: ParsedBalanceUpdate;
  /**
   * For budgets: the calendar month that it is now, or two of them near the end of a month, as the store goes by its
   * own clock.
   */
  spent: readonly MonthSpent[];
}

/**
 * Asks billing (and metering, for budgets) for a tenant; null: they know no such tenant, so it has no credit. Rejects
 * when they do not answer.
 */
export type AskForCredit = (tenantId: string) => Promise<TenantCredit | null>;

/** Brings the credit of tenants back into a store that lost it, each asked for once at a time. */
export class CreditRestorer {
  private readonly underWay = new Map<string, Promise<void>>();
  private readonly failedAtMs = new Map<string, number>();

  constructor(
    private readonly link: RedisLink,
    private readonly registry: TenantRegistry,
    private readonly ask: AskForCredit,
    private readonly now: () => number | '',
  ) {}

  /** Rejects with UnavailableError when the books do not answer in time. */
  restore(tenantId: string): Promise<void> {
    let restoring = this.underWay.get(tenantId);
    if (restoring) return restoring;
    if (this.underWay.size >= MAX_RESTORES_AT_ONCE)
      return Promise.reject(new UnavailableError('too many tenants wait for their credit'));
    restoring = this.askAndTake(tenantId).finally(() => this.underWay.delete(tenantId));
    this.underWay.set(tenantId, restoring);
    return restoring;
  }

  /** For a tenant of which news came: its first request then need not wait. */
  restoreInBackground(tenantId: string): void {
    if (this.underWay.has(tenantId) || Date.now() < (this.failedAtMs.get(tenantId) ?? 0) + TRY_AGAIN_MS) return;
    this.restore(tenantId).then(
      () => this.failedAtMs.delete(tenantId),
      (error: unknown) => {
        if (this.failedAtMs.size >= MAX_RESTORES_AT_ONCE) this.failedAtMs.clear();
        this.failedAtMs.set(tenantId, Date.now());
        logger('admission').warn(
          { err: error, tenantId },
          'the credit of a tenant could not be asked for; its next news or request tries again',
        );
      },
    );
  }

  private async askAndTake(tenantId: string): Promise<void> {
    const late = () => new UnavailableError(`nobody tells the credit of ${tenantId}`);
    try {
      const credit = await withTimeout(MAX_WAIT_MS, this.ask(tenantId), late);
      await this.link.one({
        function: 'restore',
        keys: tenantKeys(tenantId),
        args: [this.now(), restoreArgument(credit)],
      });
      // The registry forgot it with the rest; from now on it is known, and nobody else would say so again for a minute.
      await this.registry.tellAgain(tenantId);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      throw Object.assign(new UnavailableError(`the credit of ${tenantId} cannot be had`), { cause: error });
    }
  }
}

/** Of a tenant that nobody knows: version 0, so that any news replaces it. */
function restoreArgument(credit: TenantCredit | null): string {
  if (!credit) return '[0,0,false,[],[],[]]';
  const { news, spent } = credit;
  return JSON.stringify([
    amount(news.version),
    nanos(news.balanceNanos),
    news.suspended,
    news.releases,
    spentChanges(spent),
    budgetChanges(news.budgets),
  ]);
}
