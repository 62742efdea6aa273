import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { isId, type BalanceUpdate, type TenantUpdate } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, transaction } from '@tollgate/postgres';
import { enforceAtAdmission, updateAdmission } from '../outbox/update-admission';
import { BillingDataSource } from '../database';
import { lockBooks, readBooks, saveBooks } from '../ledger/books-store';
import { balanceUpdate } from '../ledger/core/books';
import { BILLING_OPTIONS } from '../options';

/**
 * Records which tenants are suspended, and sends that to the admission store with the balance updates. So permission to
 * run and credit arrive by one path, in one order. Only a change newer than the tenant's last one counts. Auth owns the
 * status. The books keep a copy, for an admission store that asks. A repeat of the last change puts a wrong copy right.
 */
@Injectable()
export class TenantStatus {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly admission: AdmissionStore,
    @Inject(BILLING_OPTIONS) private readonly options: { postingIntervalMs: number },
  ) {}

  /** For valid updates (`validateTenantUpdate`). */
  async apply(batch: readonly TenantUpdate[]): Promise<void> {
    await updateAdmission(this.admission, await this.takeIn(batch));
  }

  /**
   * The admission store has the tenant's newest status when this returns, even if the update came before and the store
   * was unavailable. Rejects when the store does not accept it: the change is committed and follows with the balance
   * update.
   */
  async enforce(update: TenantUpdate): Promise<void> {
    await this.takeIn([update]);
    const books = await readBooks(this.dataSource.manager, update.tenantId);
    // A tenant that was always active and has no credit needs no update.
    if (books && books.version > 0n) await enforceAtAdmission(this.admission, [balanceUpdate(books, [])]);
  }

  /** Commits newer changes, and returns the balance updates that they make. */
  private async takeIn(batch: readonly TenantUpdate[]): Promise<BalanceUpdate[]> {
    const newest = new Map<string, TenantUpdate>();
    for (const update of batch) {
      const known = newest.get(update.tenantId);
      if (!known || known.version < update.version) newest.set(update.tenantId, update);
    }
    if (newest.size === 0) return [];
    return transaction(this.dataSource, async (tx) => {
      const books = await lockBooks(tx, newest.keys());
      const told = [...newest.values()];
      const rows = await query<{ tenant_id: string }>(
        tx,
        `UPDATE tenant_books b
         SET status_version = n.version
         FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS n (tenant_id, version, suspended)
         WHERE b.tenant_id = n.tenant_id
           AND (b.status_version < n.version OR (b.status_version = n.version AND b.suspended <> n.suspended))
         RETURNING b.tenant_id`,
        [
          told.map((update) => update.tenantId),
          told.map((update) => update.version),
          told.map((update) => update.status === 'suspended'),
        ],
      );
      const changed = rows.map(({ tenant_id }) => {
        const before = books.get(tenant_id)!;
        return { ...before, version: before.version + 1n, suspended: newest.get(tenant_id)!.status === 'suspended' };
      });
      await saveBooks(tx, changed, this.options);
      const updates = changed.map((one) => balanceUpdate(one, []));
      await enqueue(tx, 'credit-news', updates);
      return updates;
    });
  }
}

/**
 * The reason why `value` is not a valid update of a tenant, or null if it is. A consumer that threw would get it
 * redelivered for ever, and block the messages behind it.
 */
export function validateTenantUpdate(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { tenantId, version, status } = value as Record<keyof TenantUpdate, unknown>;
  if (!isId('ten', tenantId)) return 'tenantId: not a tenant id';
  if (!Number.isSafeInteger(version) || (version as number) < 0) return 'version: not a version';
  return status === 'active' || status === 'suspended' ? null : 'status: unknown';
}
