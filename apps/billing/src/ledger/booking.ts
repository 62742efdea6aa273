import {
  MAX_REASON_CHARS,
  MAX_REF_CHARS,
  newId,
  RequestError,
  RESERVED_SOURCES,
  type Author,
  type BalanceUpdate,
  type LedgerEntry,
} from '@tollgate/contracts';
import { enqueue } from '@tollgate/messaging';
import { query, recordChange, type Change } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { saveBooks } from './books-store';
import { balanceUpdate, MAX_BALANCE_CENTS, type Books } from './core/books';
import { book, inputHash, type EntryRequest } from './core/entry';
import { insertEntries } from './journal';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from './ledger-entry';

const MAX_SOURCE_CHARS = 64;

/**
 * The result of a booking: the entry with the balance after it, and the milliseconds until gathered usage of the tenant
 * is due (null: none is due, or nothing changed).
 */
export interface Booked {
  /** `created` is false for a repeat: nothing was booked. */
  reply: { entry: LedgerEntry; balanceCents: number; created: boolean };
  dueInMs: number | null;
  /**
   * The current state of the books, to send to the admission store at once. A repeat sends it too: the first answer may
   * have been lost before the store got it.
   */
  update: BalanceUpdate;
}

export interface BookingOptions extends Pick<Change, 'action'> {
  postingIntervalMs: number;
  by: Author | undefined;
  /** What the audit log names as changed; the entry by default. */
  target?: string;
}

/**
 * Validates what callers choose of an entry: `source` and `ref`, which form the idempotency key with the tenant, and
 * the reason.
 * @throws RequestError invalid_parameter
 */
export function assertNamed({ source, ref, reason }: { source: string; ref: string; reason?: string }): void {
  if (!isPlainText(source, MAX_SOURCE_CHARS) || RESERVED_SOURCES.includes(source)) {
    throw new RequestError(
      'invalid_parameter',
      `source must have 1 to ${MAX_SOURCE_CHARS} characters and must not be one of ${RESERVED_SOURCES.join(', ')}.`,
    );
  }
  if (!isPlainText(ref, MAX_REF_CHARS))
    throw new RequestError('invalid_parameter', `ref must have 1 to ${MAX_REF_CHARS} characters.`);
  assertReason(reason);
}

/** @throws RequestError invalid_parameter */
export function assertReason(reason: string | undefined): void {
  if (reason !== undefined && (!isPlainText(reason, MAX_REASON_CHARS) || reason.trim() === ''))
    throw new RequestError('invalid_parameter', `reason must have 1 to ${MAX_REASON_CHARS} characters.`);
}

/**
 * The entry that this source and ref booked before in these (locked) books, if any. It is the first answer, whatever
 * was booked since. RequestError ref_conflict if the input differs.
 */
export async function findFirst(tx: EntityManager, books: Books, entry: EntryRequest): Promise<Booked | undefined> {
  const [row] = await query<EntryRow & { input_hash: Buffer; balance_after_cents: string }>(
    tx,
    `SELECT ${ENTRY_COLUMNS}, input_hash, balance_after_cents
     FROM journal_entry
     WHERE tenant_id = $1 AND source = $2 AND ref = $3`,
    [books.tenantId, entry.source, entry.ref],
  );
  if (!row) return undefined;
  if (!row.input_hash.equals(inputHash(entry))) {
    throw new RequestError(
      'ref_conflict',
      `${entry.source} ${entry.ref} was booked before with another amount, type or reason. ` +
        'Send another ref for another booking.',
    );
  }
  const reply = { entry: ledgerEntry(row), balanceCents: Number(row.balance_after_cents), created: false };
  return { reply, dueInMs: null, update: balanceUpdate(books, []) };
}

/**
 * Books one entry under the tenant's lock. Entry, postings, books, balance update and the row of the audit log belong
 * to the caller's transaction.
 * @throws RequestError invalid_amount if the balance would not be a safe integer
 */
export async function bookEntry(
  tx: EntityManager,
  books: Books,
  entry: EntryRequest,
  { postingIntervalMs, by, action, target }: BookingOptions,
): Promise<Booked> {
  const balanceCents = books.balanceCents + entry.amountCents;
  if (balanceCents > MAX_BALANCE_CENTS || balanceCents < -MAX_BALANCE_CENTS)
    throw new RequestError('invalid_amount', 'The balance would exceed ±(2^53 − 1) cents. Book a smaller amount.');
  const booked = book(books, newId('ent'), entry);
  const [written] = await insertEntries(tx, [booked.entry]);
  const dueInMs = await saveBooks(tx, [booked.books], { postingIntervalMs });
  const update = balanceUpdate(booked.books, []);
  await enqueue(tx, 'credit-news', [update]);
  await recordChange(tx, by, {
    ...{ action, tenantId: books.tenantId, target: target ?? written!.id },
    before: { balanceCents: Number(books.balanceCents) },
    after: { ...written, balanceCents: Number(balanceCents) },
  });
  return { reply: { entry: written!, balanceCents: Number(balanceCents), created: true }, dueInMs, update };
}

/** No control characters: PostgreSQL cannot store a NUL, and the others are unreadable on a receipt. */
function isPlainText(value: unknown, maxChars: number): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= maxChars && !/[\p{Cc}\p{Cs}]/u.test(value);
}
