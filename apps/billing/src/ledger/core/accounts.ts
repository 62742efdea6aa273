/**
 * The accounts of each tenant. `credit`: our liability to the tenant; its sum is the balance. `usage_revenue`: earned.
 * `payments_clearing`: against the payment provider. `adjustments`: corrections by a person. `overrun`: the operator's
 * loss.
 */
export type Account = 'credit' | 'usage_revenue' | 'payments_clearing' | 'adjustments' | 'overrun';

/** One leg of an entry. Positive credits the account, negative debits it. Never zero. */
export interface Posting {
  account: Account;
  amountCents: bigint;
}

/**
 * An operation would break a rule of the ledger. The fault is in the code or the stores, never a caller's mistake.
 * Nothing is written.
 */
export class LedgerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LedgerError';
  }
}

/**
 * Throws LedgerError unless the postings sum to zero, none is zero, each account occurs once, and `credit` moves by the
 * entry's amount.
 */
export function assertBalanced(postings: readonly Posting[], amountCents: bigint): void {
  const sum = postings.reduce((total, posting) => total + posting.amountCents, 0n);
  if (sum !== 0n) throw new LedgerError(`postings sum to ${sum}`);
  if (postings.some((posting) => posting.amountCents === 0n)) throw new LedgerError('a posting of zero');
  if (new Set(postings.map((posting) => posting.account)).size !== postings.length)
    throw new LedgerError('an account twice');
  const credit = postings.find((posting) => posting.account === 'credit')?.amountCents;
  if (credit !== amountCents) throw new LedgerError(`credit moves by ${credit}, the entry says ${amountCents}`);
}
