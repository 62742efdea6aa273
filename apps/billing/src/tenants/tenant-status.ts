import type { AdmissionStore } from '@tollgate/admission';
import type { TenantNews } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { DataSource } from 'typeorm';
import { lockBooks, saveBooks } from '../ledger/books-store';
import { creditNews, type Books } from '../ledger/core/books';

/**
 * Takes in which tenants are suspended, and tells the admission store with the credit news: so what may run and what it may cost come by one path, in one order.
 * Only what is newer than the last of a tenant counts. Auth owns the status; the books keep a copy, for an admission store that asks.
 */
export class TenantStatus {
  constructor(
    private readonly dataSource: DataSource,
    private readonly admission: AdmissionStore,
    private readonly options: { postingIntervalMs: number },
  ) {}

  async apply(batch: readonly TenantNews[]): Promise<void> {
    const newest = new Map<string, TenantNews>();
    for (const news of batch) {
      if (!isReadable(news)) {
        logger('billing').error({ news }, 'news of a tenant that cannot be read is passed over');
        continue;
      }
      const known = newest.get(news.tenantId);
      if (!known || known.version < news.version) newest.set(news.tenantId, news);
    }
    if (newest.size === 0) return;
    const changed = await transaction(this.dataSource, async (tx) => {
      const books = await lockBooks(tx, newest.keys());
      const told = [...newest.values()];
      const [rows] = await tx.query<[{ tenant_id: string }[], number]>(
        `UPDATE tenant_books b SET status_version = n.version FROM unnest($1::text[], $2::bigint[]) AS n (tenant_id, version)
         WHERE b.tenant_id = n.tenant_id AND b.status_version < n.version RETURNING b.tenant_id`,
        [told.map((news) => news.tenantId), told.map((news) => news.version)],
      );
      const changed = rows.map(({ tenant_id }) => {
        const before = books.get(tenant_id)!;
        return { ...before, version: before.version + 1n, suspended: newest.get(tenant_id)!.status === 'suspended' };
      });
      await saveBooks(tx, changed, this.options);
      await enqueue(
        tx,
        'credit-news',
        changed.map((one) => creditNews(one, [])),
      );
      return changed;
    });
    await this.tellNow(changed);
  }

  /** The committed news are on their way; but a suspension is wanted at once. */
  private async tellNow(changed: readonly Books[]): Promise<void> {
    try {
      await this.admission.applyNews(
        changed.map((books) => ({
          tenantId: books.tenantId,
          version: books.version,
          balanceNanos: BigInt(creditNews(books, []).balanceNanos),
          releases: [],
          suspended: books.suspended,
        })),
      );
    } catch (error) {
      logger('billing').warn({ err: error }, 'the admission store hears of a suspension by the news alone');
    }
  }
}

/** Thrown, it would come again for ever and hold up what is behind it. */
function isReadable(news: TenantNews | null): news is TenantNews {
  const { tenantId, version, status } = (news ?? {}) as Partial<TenantNews>;
  return (
    typeof tenantId === 'string' &&
    tenantId !== '' &&
    !tenantId.includes('\0') &&
    Number.isSafeInteger(version) &&
    (status === 'active' || status === 'suspended')
  );
}
