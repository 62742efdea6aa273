import { formatCents, type ReplyOf } from '@tollgate/contracts';

type Books = ReplyOf<'billing.request.entry'>;

/** The ledger entry that debits a request. */
export function entryOf({ entry, carriedOn }: Pick<Books, 'entry' | 'carriedOn'>, currency: string): string {
  if (entry)
    return `${entry.id}, ${formatCents(entry.amountCents, currency)} for all that it covers, ${entry.createdAt}`;
  return carriedOn ? 'less than a cent at the end of its month: carried on' : 'not posted yet';
}

/** The invoice of the month of a request. */
export function invoiceOf({ invoice, monthClosed }: Pick<Books, 'invoice' | 'monthClosed'>): string {
  if (invoice) return `${invoice.accountingNumber} of ${invoice.period} (${invoice.status})`;
  return monthClosed ? 'none: nothing was debited in its month' : 'its month is open';
}
