import type { DefaultBudgets } from '@tollgate/contracts';
import { LedgerError } from './accounts';
import { newMonth, type Books, type Month } from './books';
import type { Period } from './period';

/** A charge that has been read and may be gathered. */
export interface ReadCharge {
  id: string;
  tenantId: string;
  keyId: string;
  costNanos: bigint;
  endedAt: Date;
  period: Period;
  defaultBudgets?: DefaultBudgets;
}

/** A charge with its number within tenant and month. */
export interface NumberedCharge extends ReadCharge {
  seq: bigint;
}

export interface Gathered {
  books: Books;
  /** Only the months that changed. */
  months: Month[];
  charges: NumberedCharge[];
}

/**
 * Takes new charges of one tenant (none of them gathered before) into its books: numbers them per month and adds them up. Without
 * charges nothing changes, the version neither.
 * @param months the tenant's months as they stand, at least those of the charges that exist
 */
export function gather(books: Books, months: readonly Month[], charges: readonly ReadCharge[]): Gathered {
  if (charges.length === 0) return { books, months: [], charges: [] };
  const before = new Map(months.map((month) => [month.period, month]));
  const changed = new Map<Period, Month>();
  const numbered: NumberedCharge[] = [];
  let gathered = 0n;
  for (const charge of charges) {
    if (charge.tenantId !== books.tenantId)
      throw new LedgerError(`charge ${charge.id} is of ${charge.tenantId}, not of ${books.tenantId}`);
    if (charge.costNanos < 0n) throw new LedgerError(`charge ${charge.id} is negative`);
    const month = changed.get(charge.period) ?? before.get(charge.period) ?? newMonth(books.tenantId, charge.period);
    const seq = month.lastSeq + 1n;
    changed.set(charge.period, { ...month, lastSeq: seq, gatheredNanos: month.gatheredNanos + charge.costNanos });
    numbered.push({ ...charge, seq });
    gathered += charge.costNanos;
  }
  return {
    books: { ...books, version: books.version + 1n, gatheredNanos: books.gatheredNanos + gathered },
    months: [...changed.values()],
    charges: numbered,
  };
}
