import { Injectable } from '@nestjs/common';
import { AdmissionStore, type Snapshot } from '@tollgate/admission';
import { NANOS_PER_CENT } from '@tollgate/contracts';
import { query } from '@tollgate/postgres';
import { BillingDataSource } from '../database';
import { NO_BOOKS, type Head, type TenantView } from './compare';

/** Tenants read at once from each store. This bounds the memory. */
const PAGE_TENANTS = 200;
/** Named holds of a tenant of which the admission store knows nothing else. */
const MAX_STRAY_HOLDS = 20;

/** Ids in ascending order, and whether there are more. */
interface IdPage {
  ids: string[];
  more: boolean;
}

/** Reads the same tenants from billing and the admission store, page by page in the order of their ids. */
@Injectable()
export class Stores {
  constructor(
    private readonly dataSource: BillingDataSource,
    private readonly admission: AdmissionStore,
  ) {}

  /**
   * The next tenants after `after` that billing or the admission store knows. `next` is the `after` of the next call;
   * null at the end.
   */
  async nextTenants(after: string | undefined): Promise<{ ids: string[]; next: string | null }> {
    const pages = await Promise.all([this.billingIds(after), this.admissionIds(after)]);
    // A full page says nothing about ids beyond its last one: the store may know them or not.
    const lasts = pages.flatMap((page) => (page.more ? [page.ids.at(-1)!] : []));
    const bound = lasts.sort()[0];
    const ids = [...new Set(pages.flatMap((page) => page.ids))]
      .filter((id) => bound === undefined || id <= bound)
      .sort();
    return { ids, next: bound ?? null };
  }

  /**
   * These tenants on both sides. The books are read twice, before and after the admission store. So `compareTenant` can
   * tell a difference from an update on its way.
   * @param ids ascending, and all after `after`
   */
  async views(ids: readonly string[], after: string | undefined): Promise<TenantView[]> {
    const before = await this.heads(ids);
    const snapshots = await this.snapshots(ids, after);
    const strays = new Map<string, string[]>();
    for (const tenantId of ids) if (!snapshots.has(tenantId)) strays.set(tenantId, await this.someHolds(tenantId));
    const heads = await this.heads(ids);
    return ids.map((tenantId) => ({
      tenantId,
      before: before.get(tenantId) ?? NO_BOOKS,
      snapshot: snapshots.get(tenantId),
      asksForTenants: this.admission.asksForTenants,
      strayHolds: strays.get(tenantId) ?? [],
      after: heads.get(tenantId) ?? NO_BOOKS,
    }));
  }

  /**
   * Whether a debit of one of these tenants is on its way: perhaps withdrawn from the admission store, but not in the
   * books.
   */
  async anyWithdrawing(ids: readonly string[]): Promise<boolean> {
    if (ids.length === 0) return false;
    const rows = await query<unknown>(
      this.dataSource,
      'SELECT FROM withdrawal_intent WHERE tenant_id = ANY($1) LIMIT 1',
      [ids],
    );
    return rows.length > 0;
  }

  private async billingIds(after = ''): Promise<IdPage> {
    const rows = await query<{ tenant_id: string }>(
      this.dataSource,
      'SELECT tenant_id FROM tenant_books WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2',
      [after, PAGE_TENANTS],
    );
    return { ids: rows.map((row) => row.tenant_id), more: rows.length === PAGE_TENANTS };
  }

  private async admissionIds(after: string | undefined): Promise<IdPage> {
    const page = await this.snapshotPage(after);
    return { ids: page.map((row) => row.tenantId), more: page.length === PAGE_TENANTS };
  }

  private async heads(ids: readonly string[]): Promise<Map<string, Head>> {
    const rows = await query<{
      tenant_id: string;
      version: string;
      balance_cents: string;
      unposted: string;
      suspended: boolean;
    }>(
      this.dataSource,
      `SELECT tenant_id, version, balance_cents, carried_nanos + gathered_nanos AS unposted, suspended
       FROM tenant_books
       WHERE tenant_id = ANY($1)`,
      [ids],
    );
    return new Map(
      rows.map((row) => [
        row.tenant_id,
        {
          version: BigInt(row.version),
          balanceNanos: BigInt(row.balance_cents) * NANOS_PER_CENT - BigInt(row.unposted),
          suspended: row.suspended,
        },
      ]),
    );
  }

  private async snapshots(ids: readonly string[], after: string | undefined): Promise<Map<string, Snapshot>> {
    const last = ids.at(-1) ?? '';
    const snapshots = new Map<string, Snapshot>();
    for (let cursor = after; ;) {
      const page = await this.snapshotPage(cursor);
      for (const row of page) snapshots.set(row.tenantId, row);
      const end = page.at(-1)?.tenantId;
      if (end === undefined || page.length < PAGE_TENANTS || end >= last) return snapshots;
      cursor = end;
    }
  }

  private async someHolds(tenantId: string): Promise<string[]> {
    const holds = await this.admission.holds({ tenantId, limit: MAX_STRAY_HOLDS });
    return holds.map((hold) => hold.id);
  }

  private snapshotPage(after: string | undefined): Promise<Snapshot[]> {
    return this.admission.snapshot({ limit: PAGE_TENANTS, ...(after === undefined ? {} : { after }) });
  }
}
