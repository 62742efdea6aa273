import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore, askForSpent, parseBalanceUpdate, type MonthSpent, type Snapshot } from '@tollgate/admission';
import { NANOS_PER_CENT, type RequestOf, type TenantRepair } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { allBudgetUpdates } from '../budgets/budget-rows';
import { BillingDataSource } from '../database';
import { lockBooks } from '../ledger/books-store';
import { balanceUpdate, type Books } from '../ledger/core/books';
import { BILLING_OPTIONS } from '../options';
import { capped } from '../reconcile/compare';
import { poisonOf, stateChanges, type Poison } from './state-changes';

const HOLDS_PAGE = 500;

/** A repair of a state to which the books cannot have led. */
export interface Healed extends TenantRepair {
  poison: Poison | 'behind';
}

/**
 * Rebuilds the admission store's state of a tenant from the books. An attacker with access to the store, or a restored
 * copy, can put a version there that is above the books', and then no balance update is applied.
 *
 * All steps run under the lock of the tenant's books, so nobody makes a version meanwhile:
 * 1. Read the books, and every budget.
 * 2. Find the store's settled holds whose charge is in the books. Their release may be on its way, and until then they
 *    would count twice.
 * 3. Rebuild the state from both and from the tenant's holds, in one step. Updates in flight have this version or an
 *    older one, so they only release holds. So a repair is exact while requests run, and may be done at any time.
 */
@Injectable()
export class TenantRepairs {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    @Inject(BILLING_OPTIONS) private readonly options: { now: () => Date },
  ) {}

  /** For a person. @throws RequestError not_found; UnavailableError when auth or the admission store does not answer */
  async repair({ tenantId, dryRun = false, by }: RequestOf<'billing.tenants.repair'>): Promise<TenantRepair> {
    await this.services.request('auth.tenants.get', { tenantId });
    const spent = dryRun ? [] : await this.spent(tenantId);
    return transaction(this.dataSource, async (tx) => {
      const { books, snapshot } = await this.look(tx, tenantId);
      const changes = stateChanges(books, snapshot);
      if (dryRun) return { tenantId, changes, droppedHolds: 0, repaired: false };
      const values = (of: 'from' | 'to') => Object.fromEntries(changes.map((change) => [change.what, change[of]]));
      await recordChange(tx, by, { action: 'tenant.repair', tenantId, before: values('from'), after: values('to') });
      return { tenantId, changes, ...(await this.makeAnew(tx, books, spent)), repaired: true };
    });
  }

  /**
   * Repairs a tenant whose state the books do not explain. Null if they do.
   * @param heardOf a version that the store must have by now; otherwise an update is lost, or a forged state passes for
   * an old one
   */
  async heal(tenantId: string, heardOf?: bigint): Promise<Healed | null> {
    // Most looks find nothing. So metering is asked only where needed, and before the lock.
    if ((await this.whatIsWrong(tenantId, heardOf)) === null) return null;
    const spent = await this.spent(tenantId);
    return transaction(this.dataSource, async (tx) => {
      const { books, snapshot, poison } = await this.judge(tx, tenantId, heardOf);
      if (poison === null) return null;
      const changes = stateChanges(books, snapshot);
      return { tenantId, poison, changes, ...(await this.makeAnew(tx, books, spent)), repaired: true };
    });
  }

  private whatIsWrong(tenantId: string, heardOf?: bigint): Promise<Healed['poison'] | null> {
    return transaction(this.dataSource, async (tx) => (await this.judge(tx, tenantId, heardOf)).poison);
  }

  private async judge(tx: EntityManager, tenantId: string, heardOf: bigint | undefined) {
    const { books, snapshot } = await this.look(tx, tenantId);
    const intents = await query<unknown>(tx, 'SELECT FROM withdrawal_intent WHERE tenant_id = $1 LIMIT 1', [tenantId]);
    let poison: Healed['poison'] | null = poisonOf(books, snapshot, intents.length > 0);
    if (poison === null && snapshot && (await isAboveAllSince(tx, books, snapshot))) poison = 'balance';
    if (poison === null && snapshot && heardOf !== undefined && snapshot.version < heardOf) poison = 'behind';
    return { books, snapshot, poison };
  }

  private async look(tx: EntityManager, tenantId: string) {
    const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
    const [snapshot] = await this.admission.snapshot({ tenantId, limit: 1 });
    return { books, snapshot };
  }

  private async makeAnew(tx: EntityManager, books: Books, spent: readonly MonthSpent[]) {
    const { tenantId } = books;
    const releases = await this.gathered(tx, tenantId);
    const { budgets = [], ...update } = parseBalanceUpdate({
      ...balanceUpdate(books, releases),
      budgets: await allBudgetUpdates(tx, tenantId),
    });
    return this.admission.repair({ ...update, budgets, spent });
  }

  /** The settled holds in the store whose charge is in the books. */
  private async gathered(tx: EntityManager, tenantId: string): Promise<string[]> {
    const ids: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.holds(tenantId, after);
      if (page === null) return ids;
      const rows = await query<{ id: string }>(tx, 'SELECT id FROM charge WHERE id = ANY($1) AND tenant_id = $2', [
        page.filter(({ state }) => state === 'settled').map(({ id }) => id),
        tenantId,
      ]);
      ids.push(...rows.map(({ id }) => id));
      if (page.length < HOLDS_PAGE) return ids;
      after = page.at(-1)!.id;
    }
  }

  /** Null if the holds cannot be read. Then the sweeper redelivers what is owed, and the releases follow. */
  private async holds(tenantId: string, after: string | undefined) {
    try {
      return await this.admission.holds({ tenantId, limit: HOLDS_PAGE, ...(after === undefined ? {} : { after }) });
    } catch (error) {
      logger('billing').warn({ err: error, tenantId }, 'the holds of a tenant cannot be read before its repair');
      return null;
    }
  }

  /** For the budgets of the month. A repair of the credit does not wait for metering. */
  private async spent(tenantId: string): Promise<MonthSpent[]> {
    try {
      return await askForSpent(this.services, tenantId, () => this.options.now().getTime());
    } catch (error) {
      logger('billing').warn({ err: error, tenantId }, 'a tenant is repaired without its spending of this month');
      return [];
    }
  }
}

/**
 * Whether a state of an older version has more than the books had at that version or later. Then it is no update on its
 * way. Old balances are not stored by version. But every entry increments the version, so the newest entry at that
 * version is at most as many entries back as versions have passed, and usage gathered since an entry only lowers the
 * balance after it.
 */
async function isAboveAllSince(tx: EntityManager, books: Books, snapshot: Snapshot): Promise<boolean> {
  const passed = books.version - snapshot.version;
  const nanos = capped(snapshot.balanceNanos + snapshot.withdrawnNanos);
  if (passed <= 0n || nanos <= 0n || nanos <= books.balanceCents * NANOS_PER_CENT) return false;
  const rows = await query<unknown>(
    tx,
    'SELECT FROM journal_entry WHERE tenant_id = $1 AND sequence >= $2 AND balance_after_cents >= $3 LIMIT 1',
    [books.tenantId, String(books.lastSequence - passed), String((nanos + NANOS_PER_CENT - 1n) / NANOS_PER_CENT)],
  );
  return rows.length === 0;
}
