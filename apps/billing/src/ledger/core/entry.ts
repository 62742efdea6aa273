import { createHash } from 'node:crypto';
import { assertBalanced, LedgerError, type Account, type Posting } from './accounts';
import { MAX_BALANCE_CENTS, type Books } from './books';
import type { Period } from './period';

export type EntryType = 'topup' | 'usage' | 'adjustment' | 'refund';

/** The ref of an entry of INVOICE_SOURCE begins with this. The number of the invoice follows. */
export const VOID_REF = 'void-';

/** The account for the other side of each kind of entry. */
const CONTRA_ACCOUNT: Record<EntryType, Account> = {
  topup: 'payments_clearing',
  usage: 'usage_revenue',
  adjustment: 'adjustments',
  refund: 'payments_clearing',
};

/** The input that a repeat must match. */
export type IdempotencyInput = Pick<EntryRequest, 'type' | 'amountCents' | 'reason' | 'all'>;

/** An entry to book. Idempotency key: tenant, source and ref. */
export interface EntryRequest {
  type: EntryType;
  /** From the tenant's view: money in is positive, a debit negative. */
  amountCents: bigint;
  source: string;
  ref: string;
  period: Period;
  /** A person's reason. Required for an adjustment. */
  reason?: string | undefined;
  /** The account that an adjustment reverses, if not `adjustments`. */
  contra?: Account;
  /** The caller asked for `all`, not for an amount. A repeat must ask for `all` again. */
  all?: boolean;
  /** What the caller asked for, if it differs from this entry. A repeat must match it. */
  asked?: IdempotencyInput;
  /** For usage: the amount served beyond holds, which is revenue that the operator pays. */
  overrunCents?: bigint;
}

export interface Entry extends EntryRequest {
  id: string;
  tenantId: string;
  /** 1, 2, … per tenant. */
  sequence: bigint;
  inputHash: Buffer;
  balanceAfterCents: bigint;
  postings: Posting[];
}

/**
 * Books one balanced entry. Throws LedgerError if the sign does not fit the type, if a debit (other than an adjustment)
 * would take the balance below zero, or if the balance would not be a safe integer.
 */
export function book(books: Books, id: string, request: EntryRequest): { books: Books; entry: Entry } {
  const { type, amountCents, overrunCents = 0n } = request;
  const signFits = type === 'topup' ? amountCents > 0n : type === 'adjustment' ? amountCents !== 0n : amountCents < 0n;
  if (!signFits) throw new LedgerError(`a ${type} of ${amountCents} cents`);
  const balanceCents = books.balanceCents + amountCents;
  if (amountCents < 0n && type !== 'adjustment' && balanceCents < 0n) {
    throw new LedgerError(
      `a ${type} of ${amountCents} cents takes the balance of ${books.tenantId} to ${balanceCents}`,
    );
  }
  if (balanceCents > MAX_BALANCE_CENTS || balanceCents < -MAX_BALANCE_CENTS)
    throw new LedgerError(`a balance of ${balanceCents} cents`);
  const postings: Posting[] = [
    { account: 'credit', amountCents },
    { account: request.contra ?? CONTRA_ACCOUNT[type], amountCents: overrunCents - amountCents },
  ];
  if (overrunCents > 0n) postings.push({ account: 'overrun', amountCents: -overrunCents });
  assertBalanced(postings, amountCents);
  const sequence = books.lastSequence + 1n;
  return {
    books: { ...books, version: books.version + 1n, balanceCents, lastSequence: sequence },
    entry: {
      ...request,
      id,
      tenantId: books.tenantId,
      sequence,
      inputHash: inputHash(request.asked ?? request),
      balanceAfterCents: balanceCents,
      postings,
    },
  };
}

/**
 * SHA-256 of the request beside its idempotency key. The month is not part of it, because a repeat may arrive in the
 * next month.
 */
export function inputHash({ type, amountCents, reason, all = false }: IdempotencyInput): Buffer {
  const asked = [type, all ? 'all' : String(amountCents), ...(reason === undefined ? [] : [reason])];
  return createHash('sha256').update(JSON.stringify(asked)).digest();
}
