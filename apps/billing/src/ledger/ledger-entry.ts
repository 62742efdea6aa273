import type { LedgerEntry } from '@tollgate/contracts';

export const ENTRY_COLUMNS = 'id, type, amount_cents, source, ref, reason, created_at';

/** A journal_entry row as node-postgres returns it. */
export interface EntryRow {
  id: string;
  type: LedgerEntry['type'];
  amount_cents: string;
  source: string;
  ref: string;
  reason: string | null;
  created_at: Date;
}

/** A journal row as the API shows it. Amounts are safe integers, because the balance is bounded. */
export function ledgerEntry(row: EntryRow): LedgerEntry {
  return {
    id: row.id,
    type: row.type,
    amountCents: Number(row.amount_cents),
    source: row.source,
    ref: row.ref,
    ...(row.reason !== null && { reason: row.reason }),
    createdAt: row.created_at.toISOString(),
  };
}
