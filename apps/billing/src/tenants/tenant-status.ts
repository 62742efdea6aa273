import { Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { isId, type BalanceUpdate, type TenantUpdate } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, transaction } from '@tollgate/postgres';
import { enforceAtAdmission, tellAdmission } from '../consume/tell-admission';
import { BillingDataSource } from '../database';
import { lockBooks, readBooks, saveBooks } from '../ledger/books-store';
import { balanceUpdate } from '../ledger/core/books';
import { InjectOptions } from '../options';

/**
 * Takes in which tenants are suspended, and tells the admission store with the credit news: so what may run and what it
 * may cost come by one path, in one order. Only what is newer than the last of a tenant counts. Auth owns the status;
 * the books keep a copy, for an admission store that asks.
 */
@Injectable()
export class TenantStatus {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly admission: AdmissionStore,
    @InjectOptions() private readonly options: { postingIntervalMs: number },
  ) {}

  /** Of readable news (`validateTenantUpdate`). */
  async apply(batch: readonly TenantUpdate[]): Promise<void> {
    await tellAdmission(this.admission, await this.takeIn(batch));
  }

  /**
   * The admission store has the tenant's newest status when this returns, also where the news came before and the store
   * was away. Rejects when it does not take it: what is committed goes there with the news.
   */
  async enforce(news: TenantUpdate): Promise<void> {
    await this.takeIn([news]);
    const books = await readBooks(this.dataSource.manager, news.tenantId);
    // Of a tenant that was never anything but active, and has no credit, there is nothing to tell.
    if (books && books.version > 0n) await enforceAtAdmission(this.admission, [balanceUpdate(books, [])]);
  }

  /** Commits what is newer, and gives the news of the books that it makes. */
  private async takeIn(batch: readonly TenantUpdate[]): Promise<BalanceUpdate[]> {
    const newest = new Map<string, TenantUpdate>();
    for (const news of batch) {
      const known = newest.get(news.tenantId);
      if (!known || known.version < news.version) newest.set(news.tenantId, news);
    }
    if (newest.size === 0) return [];
    return transaction(this.dataSource, async (tx) => {
      const books = await lockBooks(tx, newest.keys());
      const told = [...newest.values()];
      const rows = await query<{ tenant_id: string }>(
        tx,
        `UPDATE tenant_books b SET status_version = n.version FROM unnest($1::text[], $2::bigint[]) AS n (tenant_id, version)
         WHERE b.tenant_id = n.tenant_id AND b.status_version < n.version RETURNING b.tenant_id`,
        [told.map((news) => news.tenantId), told.map((news) => news.version)],
      );
      const changed = rows.map(({ tenant_id }) => {
        const before = books.get(tenant_id)!;
        return { ...before, version: before.version + 1n, suspended: newest.get(tenant_id)!.status === 'suspended' };
      });
      await saveBooks(tx, changed, this.options);
      const news = changed.map((one) => balanceUpdate(one, []));
      await enqueue(tx, 'credit-news', news);
      return news;
    });
  }
}

/**
 * Why `value` is no news of a tenant that can be taken in, or null when it is. Thrown in a consumer, it would come
 * again for ever and hold up what is behind it.
 */
export function validateTenantUpdate(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { tenantId, version, status } = value as Record<keyof TenantUpdate, unknown>;
  if (!isId('ten', tenantId)) return 'tenantId: not a tenant id';
  if (!Number.isSafeInteger(version) || (version as number) < 0) return 'version: not a version';
  return status === 'active' || status === 'suspended' ? null : 'status: unknown';
}
