import type { AdmissionStore, Snapshot } from '@tollgate/admission';
import { NANOS_PER_CENT } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import type { DataSource } from 'typeorm';
import { NO_BOOKS, NO_EVENTS, type EventSums, type Head, type TenantView } from './compare';

/** Tenants read at once from each store: the bound of memory. */
export const PAGE_TENANTS = 200;
/** Metering sums over many rows for a page. */
const SUMS_DEADLINE_MS = 60_000;
/** News takes well under a second; a hold whose charge was gathered so long ago has been forgotten. */
const RELEASE_WITHIN_MS = 60_000;

/** Ids ascending, and whether more come after them. */
interface IdPage {
  ids: string[];
  more: boolean;
}

/** Reads the same tenants from billing, metering and the admission store, page by page in the order of their ids. */
export class Stores {
  constructor(
    private readonly dataSource: DataSource,
    private readonly messages: Messages,
    private readonly admission: AdmissionStore,
  ) {}

  /** The next tenants after `after` that any store knows, and `next` to go on from; null at the end. */
  async nextTenants(after: string | undefined): Promise<{ ids: string[]; next: string | null }> {
    const pages = await Promise.all([this.billingIds(after), this.meteringIds(after), this.admissionIds(after)]);
    // A store with more to come has told nothing beyond its last id.
    const lasts = pages.flatMap((page) => (page.more ? [page.ids.at(-1)!] : []));
    const bound = lasts.sort()[0];
    const ids = [...new Set(pages.flatMap((page) => page.ids))]
      .filter((id) => bound === undefined || id <= bound)
      .sort();
    return { ids, next: bound ?? null };
  }

  /** These tenants (ascending, all after `after`) in all stores, the books read before and after the others. */
  async views(ids: readonly string[], after: string | undefined): Promise<TenantView[]> {
    const before = await this.heads(ids);
    const events = await this.eventSums(ids, after);
    const snapshots = await this.snapshots(ids, after);
    const heads = await this.heads(ids);
    const overdue = await this.gatheredLongAgo([...snapshots.values()]);
    return ids.map((tenantId) => {
      const snapshot = snapshots.get(tenantId);
      return {
        tenantId,
        before: before.get(tenantId) ?? NO_BOOKS,
        events: events.get(tenantId) ?? NO_EVENTS,
        snapshot,
        after: heads.get(tenantId) ?? NO_BOOKS,
        overdueHold: overdue.has(snapshot?.oldestSettledId ?? '')
          ? (snapshot?.oldestSettledId ?? undefined)
          : undefined,
      };
    });
  }

  private async billingIds(after = ''): Promise<IdPage> {
    const rows = await this.dataSource.query<{ tenant_id: string }[]>(
      'SELECT tenant_id FROM tenant_books WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2',
      [after, PAGE_TENANTS],
    );
    return { ids: rows.map((row) => row.tenant_id), more: rows.length === PAGE_TENANTS };
  }

  private async meteringIds(after: string | undefined): Promise<IdPage> {
    const page = await this.sums(after);
    return { ids: page.data.map((row) => row.tenantId), more: page.nextCursor !== null };
  }

  private async admissionIds(after: string | undefined): Promise<IdPage> {
    const page = await this.snapshotPage(after);
    return { ids: page.map((row) => row.tenantId), more: page.length === PAGE_TENANTS };
  }

  private async heads(ids: readonly string[]): Promise<Map<string, Head>> {
    const rows = await this.dataSource.query<
      {
        tenant_id: string;
        version: string;
        balance_cents: string;
        unposted: string;
        charges: string;
        debited: string;
      }[]
    >(
      `SELECT tenant_id, version, balance_cents, carried_nanos + b.gathered_nanos AS unposted,
         (SELECT coalesce(sum(last_seq), 0) FROM tenant_month WHERE tenant_id = b.tenant_id) AS charges,
         (SELECT coalesce(sum(debited_cents), 0) FROM tenant_month WHERE tenant_id = b.tenant_id) AS debited
       FROM tenant_books b WHERE tenant_id = ANY($1)`,
      [ids],
    );
    return new Map(
      rows.map((row) => [
        row.tenant_id,
        {
          version: BigInt(row.version),
          balanceNanos: BigInt(row.balance_cents) * NANOS_PER_CENT - BigInt(row.unposted),
          charges: BigInt(row.charges),
          chargesNanos: BigInt(row.debited) * NANOS_PER_CENT + BigInt(row.unposted),
        },
      ]),
    );
  }

  private async eventSums(ids: readonly string[], after: string | undefined): Promise<Map<string, EventSums>> {
    const last = ids.at(-1) ?? '';
    const sums = new Map<string, EventSums>();
    for (let cursor = after; ;) {
      const page = await this.sums(cursor);
      for (const row of page.data)
        sums.set(row.tenantId, { events: BigInt(row.events), costNanos: BigInt(row.costNanos) });
      const end = page.data.at(-1)?.tenantId;
      if (page.nextCursor === null || end === undefined || end >= last) return sums;
      cursor = page.nextCursor;
    }
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

  private sums(after: string | undefined) {
    const request = { limit: PAGE_TENANTS, ...(after === undefined ? {} : { after }) };
    return this.messages.request('metering.sums', request, { deadlineMs: SUMS_DEADLINE_MS });
  }

  private snapshotPage(after: string | undefined): Promise<Snapshot[]> {
    return this.admission.snapshot({ limit: PAGE_TENANTS, ...(after === undefined ? {} : { after }) });
  }

  private async gatheredLongAgo(snapshots: readonly Snapshot[]): Promise<Set<string>> {
    const ids = snapshots.flatMap((snapshot) => snapshot.oldestSettledId ?? []);
    const rows = await this.dataSource.query<{ id: string }[]>(
      `SELECT id FROM charge WHERE id = ANY($1) AND gathered_at < now() - $2 * interval '1 millisecond'`,
      [ids, RELEASE_WITHIN_MS],
    );
    return new Set(rows.map((row) => row.id));
  }
}
