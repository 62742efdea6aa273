import { newId, RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { transaction } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import { loadOpenMonths, lockBooks, saveBooks, saveMonths } from '../ledger/books-store';
import { byTenant, creditNews, type Books, type Month } from '../ledger/core/books';
import type { Entry } from '../ledger/core/entry';
import { newestOver, periodOf, type Period } from '../ledger/core/period';
import { postThrough, type Cover } from '../ledger/core/post';
import { insertCovers, insertEntries } from '../ledger/journal';

/** So many tenants are closed in one transaction. */
const MAX_TENANTS_PER_CLOSING = 100;
const PERIOD = /^\d{4}-(0[1-9]|1[0-2])$/;

export const DEFAULT_CLOSE_DELAY_MS = 60 * 60 * 1000;

export interface ClosingOptions {
  postingIntervalMs: number;
  /** A month is closed so long after its end, so that what is on its way arrives in it. */
  closeDelayMs: number;
  /** The clock; the system's by default. */
  now: () => Date;
}

/** Months closed with an invoice, without one (nothing was debited), and those that stay open, as the credit does not pay for their usage yet. */
export type Closed = ReplyOf<'billing.invoices.close'>;

/**
 * Closes months. One transaction a batch of tenants, and one closer at a time, by the lock on the counter:
 *
 * 1. the counter is locked; who finds it locked leaves the work to the other;
 * 2. the tenants' books are locked, in sorted order: nothing of theirs is gathered or posted meanwhile;
 * 3. what has gathered in the months is posted, in whole cents; less than a cent goes on to the next month;
 * 4. the months are closed, and each that was debited gets an invoice with the next number.
 *
 * So a crash at any point leaves a batch done or untouched, and no number is lost or used twice.
 */
export class InvoiceCloser {
  constructor(
    private readonly dataSource: DataSource,
    private readonly options: ClosingOptions,
  ) {}

  /** Closes all that has been over for long enough. Null: another replica is at it. */
  closeDue(): Promise<Closed | null> {
    const { now, closeDelayMs } = this.options;
    return this.closeThrough(newestOver(now(), closeDelayMs), { wait: false });
  }

  /**
   * Closes a month that is over, and those before it, without waiting for the usual time; what comes later belongs to the running month.
   * @throws RequestError invalid_period
   */
  async close({ period, tenantId }: RequestOf<'billing.invoices.close'>): Promise<Closed> {
    if (typeof period !== 'string' || !PERIOD.test(period))
      throw new RequestError('invalid_period', 'period must be a month, YYYY-MM.');
    if (period >= periodOf(this.options.now())) throw new RequestError('invalid_period', `${period} is not over.`);
    return (await this.closeThrough(period, { wait: true, ...(tenantId === undefined ? {} : { tenantId }) }))!;
  }

  private async closeThrough(
    through: Period,
    { wait, tenantId }: { wait: boolean; tenantId?: string },
  ): Promise<Closed | null> {
    const closed: Closed = { invoices: 0, empty: 0, waiting: 0 };
    for (let after = ''; ;) {
      const batch = await transaction(this.dataSource, async (tx) => {
        const number = await lockCounter(tx, wait);
        if (number === null) return null;
        const ids = tenantId === undefined ? await openTenants(tx, through, after) : [tenantId];
        const result = await this.closeTenants(tx, ids, through, number);
        const last = tenantId !== undefined || ids.length < MAX_TENANTS_PER_CLOSING;
        await saveCounter(tx, number + BigInt(result.invoices), last && tenantId === undefined ? through : null);
        return { ...result, next: last ? null : ids.at(-1)! };
      });
      if (!batch) return null;
      closed.invoices += batch.invoices;
      closed.empty += batch.empty;
      closed.waiting += batch.waiting;
      if (batch.next === null) return closed;
      after = batch.next;
    }
  }

  private async closeTenants(tx: EntityManager, ids: string[], through: Period, number: bigint): Promise<Closed> {
    if (ids.length === 0) return { invoices: 0, empty: 0, waiting: 0 };
    const books = await lockBooks(tx, ids);
    const openOf = byTenant((await loadOpenMonths(tx, ids)).filter((month) => month.period <= through));
    const changed: Books[] = [];
    const entries: Entry[] = [];
    const covers: Cover[] = [];
    const covered: Month[] = [];
    const months: Month[] = [];
    for (const tenantId of [...openOf.keys()].sort()) {
      const open = openOf.get(tenantId)!;
      const posted = postThrough(books.get(tenantId)!, open, through, () => newId('ent'));
      if (posted.covers.length > 0) changed.push(posted.books);
      entries.push(...posted.entries);
      covers.push(...posted.covers);
      covered.push(...posted.months);
      const now = new Map(posted.months.map((month) => [month.period, month]));
      months.push(...open.map((month) => now.get(month.period) ?? month));
    }
    await insertEntries(tx, entries);
    await insertCovers(tx, covers);
    await saveMonths(tx, covered);
    await saveBooks(tx, changed, this.options);
    await enqueue(
      tx,
      'credit-news',
      changed.map((one) => creditNews(one, [])),
    );
    const done = months.filter((month) => month.coveredSeq === month.lastSeq);
    const invoiced = done.filter((month) => month.debitedCents > 0n);
    await closeMonths(tx, done, this.options.now());
    await insertInvoices(tx, invoiced, number, this.options.now());
    return {
      invoices: invoiced.length,
      empty: done.length - invoiced.length,
      waiting: months.length - done.length,
    };
  }
}

/** The last number given; null: the counter is locked, and the caller does not want to wait. */
async function lockCounter(tx: EntityManager, wait: boolean): Promise<bigint | null> {
  const [row] = await tx.query<{ last_number: string }[]>(
    `SELECT last_number FROM invoice_counter FOR UPDATE ${wait ? '' : 'SKIP LOCKED'}`,
  );
  return row ? BigInt(row.last_number) : null;
}

async function saveCounter(tx: EntityManager, lastNumber: bigint, closedThrough: Period | null): Promise<void> {
  await tx.query(
    `UPDATE invoice_counter SET last_number = $1, closed_through = greatest(closed_through, $2)
     WHERE last_number <> $1 OR closed_through < $2`,
    [String(lastNumber), closedThrough],
  );
}

async function openTenants(tx: EntityManager, through: Period, after: string): Promise<string[]> {
  const rows = await tx.query<{ tenant_id: string }[]>(
    `SELECT DISTINCT tenant_id FROM tenant_month WHERE closed_at IS NULL AND period <= $1 AND tenant_id > $2 ORDER BY tenant_id LIMIT $3`,
    [through, after, MAX_TENANTS_PER_CLOSING],
  );
  return rows.map((row) => row.tenant_id);
}

async function closeMonths(tx: EntityManager, months: readonly Month[], now: Date): Promise<void> {
  await tx.query(
    `UPDATE tenant_month m SET closed_at = $3 FROM unnest($1::text[], $2::text[]) AS n (tenant_id, period)
     WHERE m.tenant_id = n.tenant_id AND m.period = n.period`,
    [months.map((month) => month.tenantId), months.map((month) => month.period), now.toISOString()],
  );
}

async function insertInvoices(
  tx: EntityManager,
  months: readonly Month[],
  lastNumber: bigint,
  now: Date,
): Promise<void> {
  await tx.query(
    `INSERT INTO invoice (accounting_number, tenant_id, period, amount_cents, created_at)
     SELECT n.*, $5 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS n`,
    [
      months.map((_, index) => String(lastNumber + BigInt(index) + 1n)),
      months.map((month) => month.tenantId),
      months.map((month) => month.period),
      months.map((month) => String(month.debitedCents)),
      now.toISOString(),
    ],
  );
}
