import { Inject, Injectable } from '@nestjs/common';
import { newId } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { transaction } from '@tollgate/postgres';
import { failPoint, logger } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import {
  coveredPart,
  deferPosting,
  dueTenants,
  loadUncoveredMonths,
  lockDueBooks,
  saveBooks,
  saveMonths,
  type DueBooks,
} from '../ledger/books-store';
import { byTenant, balanceUpdate, type Books, type Month } from '../ledger/core/books';
import type { Entry } from '../ledger/core/entry';
import { partWanted, post, type ChargeRange } from '../ledger/core/post';
import { isBroken } from '../ledger/is-broken';
import { firstEnded, insertRanges, insertEntries } from '../ledger/journal';
import { BILLING_OPTIONS } from '../options';
import { observeDebits } from './metrics';

/** Tenants per transaction. */
const MAX_TENANTS_PER_POSTING = 100;
/** After this time, broken books are tried again: a person may have repaired them. */
const BROKEN_AGAIN_AFTER_MS = 60_000;

/**
 * Posts gathered usage to the ledger in whole cents: one balanced entry per tenant, month and run, each with the exact
 * range of charges that it covers. The database says what is due, so any number of replicas may run, and any may die.
 * Locked rows are skipped. An entry, its charge range, the books and the balance update commit together or not at all.
 */
@Injectable()
export class Poster {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(BILLING_OPTIONS) private readonly options: { postingIntervalMs: number },
  ) {}

  /**
   * Posts until nothing is due.
   * @param early also posts what is not due yet, e.g. when the process stops
   * @returns the number of tenants posted
   */
  async postDue({ early = false } = {}): Promise<number> {
    let tenants = 0;
    for (;;) {
      const posted = await this.postBatch(early);
      tenants += posted;
      if (posted > 0) failPoint('posted');
      if (posted < MAX_TENANTS_PER_POSTING) return tenants;
    }
  }

  /**
   * One transaction for all tenants. When the books of one refuse, one transaction per tenant, so that nobody waits for
   * broken books.
   */
  private async postBatch(early: boolean): Promise<number> {
    const which = { limit: MAX_TENANTS_PER_POSTING, early };
    try {
      return await this.post(which);
    } catch (error) {
      if (!isBroken(error)) throw error;
    }
    let posted = 0;
    for (const only of await dueTenants(this.dataSource.manager, which))
      posted += await this.postAlone({ ...which, only });
    return posted;
  }

  private async postAlone(which: DueBooks & { only: string }): Promise<number> {
    try {
      return await this.post(which);
    } catch (error) {
      if (!isBroken(error)) throw error;
      logger('billing').error(
        { err: error, tenantId: which.only },
        'the posting violates a ledger rule: run reconcile',
      );
      await deferPosting(this.dataSource.manager, which.only, BROKEN_AGAIN_AFTER_MS);
      return 0;
    }
  }

  /** @returns the number of tenants posted */
  private async post(which: DueBooks): Promise<number> {
    const { tenants, debited, cents } = await transaction(this.dataSource, async (tx) => {
      const due = await lockDueBooks(tx, which);
      if (due.size === 0) return { tenants: 0, debited: [], cents: 0n };
      const monthsOf = byTenant(await loadUncoveredMonths(tx, due.keys()));
      const changed: Books[] = [];
      const months: Month[] = [];
      const entries: Entry[] = [];
      const ranges: ChargeRange[] = [];
      for (const [tenantId, books] of due) {
        const open = monthsOf.get(tenantId) ?? [];
        const wanted = partWanted(books, open);
        const part = wanted && (await coveredPart(tx, wanted));
        const posted = post(books, open, () => newId('ent'), part);
        changed.push(posted.books);
        months.push(...posted.months);
        entries.push(...posted.entries);
        ranges.push(...posted.ranges);
      }
      await insertEntries(tx, entries);
      await insertRanges(tx, ranges);
      await saveMonths(tx, months);
      await saveBooks(tx, changed, { ...this.options, posted: true });
      await enqueue(
        tx,
        'credit-news',
        changed.map((books) => balanceUpdate(books, [])),
      );
      const debited = await firstEnded(tx, ranges);
      failPoint('posting');
      const cents = ranges.reduce((sum, { amountCents }) => sum + amountCents, 0n);
      return { tenants: due.size, debited, cents };
    });
    observeDebits(debited, cents);
    return tenants;
  }
}
