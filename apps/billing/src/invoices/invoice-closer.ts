import { Injectable } from '@nestjs/common';
import { newId, RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { BillingDataSource } from '../database';
import { loadOpenMonths, lockBooks, saveBooks, saveMonths } from '../ledger/books-store';
import { balanceUpdate, type Month } from '../ledger/core/books';
import { newestOver, periodOf, type Period } from '../ledger/core/period';
import { postThrough } from '../ledger/core/post';
import { isBroken } from '../ledger/is-broken';
import { insertRanges, insertEntries } from '../ledger/journal';
import { InjectOptions } from '../options';

/** So many tenants are looked up at once; each is closed in its own transaction. */
const MAX_TENANTS_PER_PAGE = 100;
const PERIOD = /^\d{4}-(0[1-9]|1[0-2])$/;

export const DEFAULT_CLOSE_DELAY_MS = 60 * 60 * 1000;

export interface ClosingOptions {
  postingIntervalMs: number;
  /** A month is closed so long after its end, so that what is on its way arrives in it. */
  closeDelayMs: number;
  /** The clock; the system's by default. */
  now: () => Date;
}

/**
 * Months closed with an invoice, without one (nothing was debited), and those that stay open, as the credit does not
 * pay for their usage yet or the books refuse.
 */
export type Closed = ReplyOf<'billing.invoices.close'>;

/**
 * Closes months. One transaction a tenant, and one closer at a time, by the lock on the counter:
 *
 * 1. the counter is locked; who finds it locked leaves the rest of the work to the other;
 * 2. the tenant's books are locked: nothing of it is gathered or posted meanwhile, for as long as its own month takes
 *    and no longer;
 * 3. what has gathered in the months is posted, in whole cents; less than a cent goes on to the next month;
 * 4. the months are closed, and each that was debited gets an invoice with the next number.
 *
 * So a crash at any point leaves a tenant done or untouched, and no number is lost or used twice. A tenant whose books
 * refuse is left open, for the next round, and holds up nobody else.
 */
@Injectable()
export class InvoiceCloser {
  constructor(
    private readonly dataSource: BillingDataSource,
    @InjectOptions() private readonly options: ClosingOptions,
  ) {}

  /**
   * Closes all that has been over for long enough; what this replica did of it. Null: nothing, another one is at it.
   */
  closeDue(): Promise<Closed | null> {
    const { now, closeDelayMs } = this.options;
    return this.closeThrough(newestOver(now(), closeDelayMs), { wait: false });
  }

  /**
   * Closes a month that is over, and those before it, without waiting for the usual time; what comes later belongs to
   * the running month. Of one tenant, it fails when that one's books refuse.
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
    let closed: Closed | null = null;
    for (let after = ''; ;) {
      const ids = tenantId === undefined ? await openTenants(this.dataSource.manager, through, after) : [tenantId];
      for (const id of ids) {
        const one = await (tenantId === undefined
          ? this.closeOrLeave(id, through, wait)
          : this.closeTenant(id, through, wait));
        if (!one) return closed;
        closed = sum(closed ?? NOTHING, one);
      }
      if (tenantId !== undefined) return closed;
      if (ids.length < MAX_TENANTS_PER_PAGE) break;
      after = ids.at(-1)!;
    }
    // Months that were opened behind it stay open, as those that wait for credit, for the next round.
    return (await this.advance(through, wait)) ? (closed ?? NOTHING) : closed;
  }

  /** As closeTenant; books that refuse are logged, and what is open of them waits. */
  private async closeOrLeave(tenantId: string, through: Period, wait: boolean): Promise<Closed | null> {
    try {
      return await this.closeTenant(tenantId, through, wait);
    } catch (error) {
      if (!isBroken(error)) throw error;
      logger('billing').error({ err: error, tenantId }, 'the books refuse to close this month: run reconcile');
      const open = (await loadOpenMonths(this.dataSource.manager, [tenantId])).filter(
        ({ period }) => period <= through,
      );
      return { ...NOTHING, waiting: open.length };
    }
  }

  /** Null: the counter is locked. */
  private closeTenant(tenantId: string, through: Period, wait: boolean): Promise<Closed | null> {
    return transaction(this.dataSource, async (tx) => {
      const lastNumber = await lockCounter(tx, wait);
      if (lastNumber === null) return null;
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      const open = (await loadOpenMonths(tx, [tenantId])).filter((month) => month.period <= through);
      const posted = postThrough(books, open, through, () => newId('ent'));
      await insertEntries(tx, posted.entries);
      await insertRanges(tx, posted.ranges);
      await saveMonths(tx, posted.months);
      if (posted.ranges.length > 0) {
        await saveBooks(tx, [posted.books], this.options);
        await enqueue(tx, 'credit-news', [balanceUpdate(posted.books, [])]);
      }
      const covered = new Map(posted.months.map((month) => [month.period, month]));
      const done = open
        .map((month) => covered.get(month.period) ?? month)
        .filter((month) => month.coveredSeq === month.lastSeq);
      const invoiced = done.filter((month) => month.debitedCents > 0n);
      await closeMonths(tx, done, this.options.now());
      await insertInvoices(tx, invoiced, lastNumber, this.options.now());
      await saveCounter(tx, lastNumber + BigInt(invoiced.length), null);
      return {
        invoices: invoiced.length,
        empty: done.length - invoiced.length,
        waiting: open.length - done.length,
      };
    });
  }

  /**
   * From now on late charges of these months belong to the running one, also of tenants that had nothing in them.
   * False: the counter is locked.
   */
  private advance(through: Period, wait: boolean): Promise<boolean> {
    return transaction(this.dataSource, async (tx) => {
      const lastNumber = await lockCounter(tx, wait);
      if (lastNumber === null) return false;
      await saveCounter(tx, lastNumber, through);
      return true;
    });
  }
}

const NOTHING: Closed = { invoices: 0, empty: 0, waiting: 0 };

function sum(a: Closed, b: Closed): Closed {
  return { invoices: a.invoices + b.invoices, empty: a.empty + b.empty, waiting: a.waiting + b.waiting };
}

/** The last number given; null: the counter is locked, and the caller does not want to wait. */
async function lockCounter(tx: EntityManager, wait: boolean): Promise<bigint | null> {
  const [row] = await query<{ last_number: string }>(
    tx,
    `SELECT last_number FROM invoice_counter FOR UPDATE ${wait ? '' : 'SKIP LOCKED'}`,
  );
  return row ? BigInt(row.last_number) : null;
}

async function saveCounter(tx: EntityManager, lastNumber: bigint, closedThrough: Period | null): Promise<void> {
  await query(
    tx,
    `UPDATE invoice_counter SET last_number = $1, closed_through = greatest(closed_through, $2)
     WHERE last_number <> $1 OR closed_through < $2`,
    [String(lastNumber), closedThrough],
  );
}

async function openTenants(tx: EntityManager, through: Period, after: string): Promise<string[]> {
  const rows = await query<{ tenant_id: string }>(
    tx,
    `SELECT DISTINCT tenant_id FROM tenant_month WHERE closed_at IS NULL AND period <= $1 AND tenant_id > $2 ORDER BY tenant_id LIMIT $3`,
    [through, after, MAX_TENANTS_PER_PAGE],
  );
  return rows.map((row) => row.tenant_id);
}

async function closeMonths(tx: EntityManager, months: readonly Month[], now: Date): Promise<void> {
  await query(
    tx,
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
  await query(
    tx,
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
