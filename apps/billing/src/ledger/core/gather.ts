import type { DefaultBudgets } from '@tollgate/contracts';
import { LedgerError } from './accounts';
import { newMonth, type Books, type Month } from './books';
import { nextPeriod, type Period } from './period';

/** A valid charge, ready to be gathered. */
export interface ReadCharge {
  id: string;
  tenantId: string;
  keyId: string;
  costNanos: bigint;
  /** Served beyond the hold, and not charged. Absent if nothing was. */
  overrunNanos?: bigint;
  endedAt: Date;
  /** The month in which the request ended. */
  ownPeriod: Period;
  defaultBudgets?: DefaultBudgets;
  /** Its event was not recorded, because its month is closed. So only a repeat is taken. */
  late?: true;
  /** Its quarantined event was dismissed, so nothing is charged, and only its hold ends. */
  dismissed?: true;
}

/** A charge with the month to which it is billed, and its number within tenant and that month. */
export interface NumberedCharge extends ReadCharge {
  billedPeriod: Period;
  seq: bigint;
}

/** Decides the month of late charges. */
export interface Calendar {
  running: Period;
  /** For a tenant with nothing in them, months up to this one count as closed. */
  closedThrough: Period;
}

export interface Gathered {
  books: Books;
  /** Only the months that changed. */
  months: Month[];
  charges: NumberedCharge[];
}

/**
 * Adds new charges of one tenant to its books: numbers them per month and sums them. None of them may have been
 * gathered before. Without charges nothing changes, not even the version. A charge of a closed month belongs to the
 * running one.
 * @param months the tenant's months, all from the oldest of the charges on
 */
export function gather(
  books: Books,
  months: readonly Month[],
  charges: readonly ReadCharge[],
  calendar: Calendar,
): Gathered {
  if (charges.length === 0) return { books, months: [], charges: [] };
  const before = new Map(months.map((month) => [month.period, month]));
  const changed = new Map<Period, Month>();
  const numbered: NumberedCharge[] = [];
  let gathered = 0n;
  let overrun = 0n;
  for (const charge of charges) {
    if (charge.tenantId !== books.tenantId)
      throw new LedgerError(`charge ${charge.id} is of ${charge.tenantId}, not of ${books.tenantId}`);
    if (charge.costNanos < 0n) throw new LedgerError(`charge ${charge.id} is negative`);
    const billedPeriod = openPeriod(charge.ownPeriod, before, calendar);
    const month = changed.get(billedPeriod) ?? before.get(billedPeriod) ?? newMonth(books.tenantId, billedPeriod);
    const seq = month.lastSeq + 1n;
    changed.set(billedPeriod, { ...month, lastSeq: seq, gatheredNanos: month.gatheredNanos + charge.costNanos });
    numbered.push({ ...charge, billedPeriod, seq });
    gathered += charge.costNanos;
    overrun += charge.overrunNanos ?? 0n;
  }
  return {
    books: {
      ...books,
      version: books.version + 1n,
      gatheredNanos: books.gatheredNanos + gathered,
      overrunNanos: books.overrunNanos + overrun,
    },
    months: [...changed.values()],
    charges: numbered,
  };
}

/** The charge's own month, or the running one if its own is closed, or the next open month if both are. */
function openPeriod(own: Period, months: ReadonlyMap<Period, Month>, { running, closedThrough }: Calendar): Period {
  const isClosed = (period: Period) => months.get(period)?.closed ?? period <= closedThrough;
  if (!isClosed(own)) return own;
  let period = running > own ? running : nextPeriod(own);
  while (isClosed(period)) period = nextPeriod(period);
  return period;
}
