import { newId } from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { BillingDataSource } from '../../apps/billing/src/database';
import { loadMonths, lockBooks, saveBooks, saveMonths } from '../../apps/billing/src/ledger/books-store';
import { book } from '../../apps/billing/src/ledger/core/entry';
import { gather, type ReadCharge } from '../../apps/billing/src/ledger/core/gather';
import { periodOf } from '../../apps/billing/src/ledger/core/period';
import { insertCharges, insertEntries } from '../../apps/billing/src/ledger/journal';
import { Poster } from '../../apps/billing/src/post/poster';
import { readCharge } from '../../apps/billing/src/gather/read-charge';
import { CENT, charge } from '../../apps/billing/src/testing/billing.fixture';

const POSTING = { postingIntervalMs: 0, now: () => new Date() };

/** Books a top-up of 1.00 and a debit of two cents as the former version did. */
export async function bookAsFormer(dataSource: BillingDataSource, tenantId: string): Promise<void> {
  await topUp(dataSource, tenantId);
  await gatherCharge(dataSource, readCharge(charge(tenantId, 2n * CENT)) as ReadCharge);
  await new Poster(dataSource, POSTING).postDue();
}

/** Without the audit log. */
async function topUp(dataSource: BillingDataSource, tenantId: string): Promise<void> {
  await transaction(dataSource, async (tx) => {
    const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
    const wanted = { type: 'topup', amountCents: 100n, source: 'manual', ref: newId('msg') } as const;
    const booked = book(books, newId('ent'), { ...wanted, period: periodOf(new Date()) });
    await insertEntries(tx, [booked.entry]);
    await saveBooks(tx, [booked.books], { postingIntervalMs: 0 });
  });
}

/** Without the thresholds that a change of the budget crossed. */
async function gatherCharge(dataSource: BillingDataSource, charge: ReadCharge): Promise<void> {
  await transaction(dataSource, async (tx) => {
    const books = (await lockBooks(tx, [charge.tenantId])).get(charge.tenantId)!;
    const calendar = { running: periodOf(new Date()), closedThrough: '0000-00' };
    const { months } = await loadMonths(tx, [charge]);
    const gathered = gather(books, months, [charge], calendar);
    await insertCharges(tx, gathered.charges);
    await saveMonths(tx, gathered.months);
    await saveBooks(tx, [gathered.books], POSTING);
    await query(
      tx,
      `INSERT INTO budget_month AS stored (tenant_id, period, key_id, spent_nanos)
       SELECT $1, $2, key_id, $4 FROM unnest(ARRAY['', $3]) AS key_id
       ON CONFLICT (tenant_id, period, key_id) DO UPDATE SET spent_nanos = stored.spent_nanos + excluded.spent_nanos`,
      [charge.tenantId, charge.ownPeriod, charge.keyId, String(charge.costNanos)],
    );
  });
}
