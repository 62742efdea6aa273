import { Inject, Injectable } from '@nestjs/common';
import { newId, RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { BillingDataSource } from '../database';
import { readClocks, type Clocks } from '../ledger/clocks';
import { loadOpenMonths, lockBooks, saveBooks, saveMonths } from '../ledger/books-store';
import { balanceUpdate, type Month } from '../ledger/core/books';
import { newestOver, periodOf, type Period } from '../ledger/core/period';
import { postThrough } from '../ledger/core/post';
import { isBroken } from '../ledger/is-broken';
import { insertRanges, insertEntries } from '../ledger/journal';
import { BILLING_OPTIONS } from '../options';

/** Tenants per page. Each is closed in its own transaction. */
const MAX_TENANTS_PER_PAGE = 100;
const PERIOD = /^\d{4}-(0[1-9]|1[0-2])$/;

export const DEFAULT_CLOSE_DELAY_MS = 60 * 60 * 1000;
/** A process's clock that is further ahead of PostgreSQL's is logged. */
const MAX_AHEAD_MS = 10 * 60 * 1000;

export interface ClosingOptions extends Clocks {
  postingIntervalMs: number;
  /** A month is closed this long after its end, so that the last charges of it still arrive in time. */
  closeDelayMs: number;
}

/**
 * Months closed with an invoice, without one (nothing was debited), and months that stay open, because the credit does
 * not cover their usage yet or the books refuse.
 */
export type Closed = ReplyOf<'billing.invoices.close'>;

/**
 * Closes months. One transaction per tenant. The lock on the counter admits one closer at a time:
 *
 * 1. Lock the counter. A closer that finds it locked leaves the remaining work to the other.
 * 2. Lock the tenant's books. Nothing of this tenant is gathered or posted until its month is done.
 * 3. Post what has gathered in the months, in whole cents. Less than a cent goes on to the next month.
 * 4. Close the months. Each month that was debited gets an invoice with the next number.
 *
 * So a crash at any point leaves a tenant done or untouched, and no number is lost or used twice. A tenant whose books
 * refuse stays open until the next round, and delays nobody else.
 *
 * What is closed stays closed. So a month is over only by the clocks of both this process and PostgreSQL: one clock
 * that is ahead closes nothing early.
 */
@Injectable()
export class InvoiceCloser {
  private isAhead = false;

  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(BILLING_OPTIONS) private readonly options: ClosingOptions,
  ) {}

  /**
   * Closes all months that have been over for long enough. Returns what this replica did; null when another one is
   * closing.
   */
  async closeDue(): Promise<Closed | null> {
    const now = await this.now();
    return this.closeThrough(newestOver(now, this.options.closeDelayMs), now, false);
  }

  /**
   * Closes a month that is over, and those before it, without the usual delay. Later charges belong to the running
   * month. For a single tenant, it fails when that tenant's books refuse.
   * @throws RequestError invalid_period
   */
  async close({ period, tenantId, by }: RequestOf<'billing.invoices.close'>): Promise<Closed> {
    if (typeof period !== 'string' || !PERIOD.test(period)) throw new RequestError('invalid_period');
    const now = await this.now();
    if (period >= periodOf(now))
      throw new RequestError('invalid_period', `${period} has not ended yet. Close it when the month is over (UTC).`);
    // Before the closing, which is a transaction for each tenant: what it did is in the books.
    const tenant = tenantId === undefined ? {} : { tenantId };
    await recordChange(this.dataSource, by, { action: 'invoice.close', target: period, ...tenant });
    const closed =
      tenantId === undefined
        ? await this.closeThrough(period, now, true)
        : await this.closeTenant(tenantId, period, now, true);
    return closed!;
  }

  /** The earlier of both clocks. */
  private async now(): Promise<Date> {
    const { own, database, earlier } = await readClocks(this.options, this.dataSource);
    const isAhead = own.getTime() - database.getTime() > MAX_AHEAD_MS;
    if (isAhead && !this.isAhead)
      logger('billing').error(
        { own, database },
        'the clock is ahead of that of PostgreSQL: set it; months are closed by the earlier of both',
      );
    this.isAhead = isAhead;
    return earlier;
  }

  private async closeThrough(through: Period, now: Date, wait: boolean): Promise<Closed | null> {
    let closed: Closed | null = null;
    for (let after = ''; ;) {
      const ids = await openTenants(this.dataSource.manager, through, after);
      for (const id of ids) {
        const one = await this.closeOrLeave(id, through, now, wait);
        if (!one) return closed;
        closed = sum(closed ?? NOTHING, one);
      }
      if (ids.length < MAX_TENANTS_PER_PAGE) break;
      after = ids.at(-1)!;
    }
    // Months that were opened meanwhile stay open until the next round, like those that wait for credit.
    return (await this.advance(through, wait)) ? (closed ?? NOTHING) : closed;
  }

  /** Like closeTenant, but if the books refuse, it logs that and leaves their months open. */
  private async closeOrLeave(tenantId: string, through: Period, now: Date, wait: boolean): Promise<Closed | null> {
    try {
      return await this.closeTenant(tenantId, through, now, wait);
    } catch (error) {
      if (!isBroken(error)) throw error;
      logger('billing').error({ err: error, tenantId }, 'closing this month violates a ledger rule: run reconcile');
      const open = (await loadOpenMonths(this.dataSource.manager, [tenantId])).filter(
        ({ period }) => period <= through,
      );
      return { ...NOTHING, waiting: open.length };
    }
  }

  /** Null if the counter is locked. */
  private closeTenant(tenantId: string, through: Period, now: Date, wait: boolean): Promise<Closed | null> {
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
      await closeMonths(tx, done, now);
      await insertInvoices(tx, invoiced, lastNumber, now);
      await saveCounter(tx, lastNumber + BigInt(invoiced.length), null);
      return {
        invoices: invoiced.length,
        empty: done.length - invoiced.length,
        waiting: open.length - done.length,
      };
    });
  }

  /**
   * From now on, late charges of these months belong to the running one, even for tenants that had nothing in them.
   * False if the counter is locked.
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

/** The last number issued. Null if the counter is locked and the caller does not want to wait. */
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
    `SELECT DISTINCT tenant_id
     FROM tenant_month
     WHERE closed_at IS NULL AND period <= $1 AND tenant_id > $2
     ORDER BY tenant_id
     LIMIT $3`,
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
