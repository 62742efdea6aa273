import { newId } from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { transaction } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { loadUncoveredMonths, lockDueBooks, saveBooks, saveMonths } from '../ledger/books-store';
import { byTenant, creditNews, type Books, type Month } from '../ledger/core/books';
import type { Entry } from '../ledger/core/entry';
import { post, type Cover } from '../ledger/core/post';
import { insertCovers, insertEntries } from '../ledger/journal';

/** So many tenants are posted in one transaction. */
const MAX_TENANTS_PER_POSTING = 100;

/**
 * Posts gathered usage to the ledger: whole cents, one balanced entry per tenant, month and run, each naming the exact range of charges that it
 * covers. Work is what the database says is due, so any number of replicas may run and any may die: locked rows are passed over, and an
 * entry, its coverage, the books and the news commit together or not at all.
 */
export class Poster {
  constructor(
    private readonly dataSource: DataSource,
    private readonly options: { postingIntervalMs: number },
  ) {}

  /**
   * Posts what is due, until nothing is.
   * @param early also what is not due yet, as when the process stops
   * @returns tenants posted
   */
  async postDue({ early = false } = {}): Promise<number> {
    let tenants = 0;
    for (;;) {
      const posted = await this.postBatch(early);
      tenants += posted;
      if (posted < MAX_TENANTS_PER_POSTING) return tenants;
    }
  }

  private postBatch(early: boolean): Promise<number> {
    return transaction(this.dataSource, async (tx) => {
      const due = await lockDueBooks(tx, { limit: MAX_TENANTS_PER_POSTING, early });
      if (due.size === 0) return 0;
      const monthsOf = byTenant(await loadUncoveredMonths(tx, due.keys()));
      const changed: Books[] = [];
      const months: Month[] = [];
      const entries: Entry[] = [];
      const covers: Cover[] = [];
      for (const [tenantId, books] of due) {
        const posted = post(books, monthsOf.get(tenantId) ?? [], () => newId('ent'));
        changed.push(posted.books);
        months.push(...posted.months);
        entries.push(...posted.entries);
        covers.push(...posted.covers);
      }
      await insertEntries(tx, entries);
      await insertCovers(tx, covers);
      await saveMonths(tx, months);
      await saveBooks(tx, changed, { ...this.options, posted: true });
      await enqueue(
        tx,
        'credit-news',
        changed.map((books) => creditNews(books, [])),
      );
      return due.size;
    });
  }
}
