import { newId, RequestError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { enqueue, type Messages } from '@tollgate/messaging';
import { transaction } from '@tollgate/postgres';
import type { DataSource, EntityManager } from 'typeorm';
import { lockBooks, saveBooks } from '../ledger/books-store';
import { creditNews, MAX_BALANCE_CENTS } from '../ledger/core/books';
import { book, inputHash, METERING_SOURCE, type EntryRequest } from '../ledger/core/entry';
import { periodOf } from '../ledger/core/period';
import { insertEntries } from '../ledger/journal';
import { ENTRY_COLUMNS, ledgerEntry, type EntryRow } from '../ledger/ledger-entry';

export const MAX_TOPUP_CENTS = 1_000_000_000_000;
const MAX_SOURCE_CHARS = 64;
const MAX_REF_CHARS = 200;

type AddCredit = RequestOf<'billing.credit.add'>;

/**
 * Money in. Idempotent by tenant, source and ref: a repeat returns the first entry and changes nothing. Entry, books and news commit together.
 */
export class TopUps {
  constructor(
    private readonly dataSource: DataSource,
    private readonly messages: Messages,
    private readonly options: { postingIntervalMs: number },
  ) {}

  /**
   * @returns the reply, and milliseconds until gathered usage that this credit pays for is due
   * @throws RequestError invalid_amount (no integer from 1 to 10^12, or a balance beyond 2^53 − 1), invalid_parameter (source, ref),
   * not_found (tenant), ref_conflict; UnavailableError when auth does not answer
   */
  async add(request: AddCredit): Promise<{ reply: ReplyOf<'billing.credit.add'>; dueInMs: number | null }> {
    const { tenantId } = request;
    const entry = validated(request);
    const tenant = await this.messages.request('auth.tenants.get', { tenantId });
    return transaction(this.dataSource, async (tx) => {
      const locked = await lockBooks(tx, [tenantId]);
      const before = { ...locked.get(tenantId)!, suspended: tenant.status === 'suspended' };
      const first = await findFirst(tx, tenantId, entry);
      if (first) return { reply: { entry: first, balanceCents: Number(before.balanceCents) }, dueInMs: null };
      if (before.balanceCents + entry.amountCents > MAX_BALANCE_CENTS) {
        throw new RequestError('invalid_amount', 'The balance would be more than 2^53 - 1 cents.');
      }
      const booked = book(before, newId('ent'), entry);
      const [written] = await insertEntries(tx, [booked.entry]);
      const dueInMs = await saveBooks(tx, [booked.books], this.options);
      await enqueue(tx, 'credit-news', [creditNews(booked.books, [])]);
      return { reply: { entry: written!, balanceCents: Number(booked.books.balanceCents) }, dueInMs };
    });
  }
}

function validated({ amountCents, source, ref }: AddCredit): EntryRequest {
  if (!Number.isSafeInteger(amountCents) || amountCents < 1 || amountCents > MAX_TOPUP_CENTS) {
    throw new RequestError('invalid_amount', `amountCents must be an integer from 1 to ${MAX_TOPUP_CENTS}.`);
  }
  if (!isPlainText(source, MAX_SOURCE_CHARS) || source === METERING_SOURCE) {
    throw new RequestError(
      'invalid_parameter',
      `source must be 1 to ${MAX_SOURCE_CHARS} characters, and not "${METERING_SOURCE}".`,
    );
  }
  if (!isPlainText(ref, MAX_REF_CHARS))
    throw new RequestError('invalid_parameter', `ref must be 1 to ${MAX_REF_CHARS} characters.`);
  return { type: 'topup', amountCents: BigInt(amountCents), source, ref, period: periodOf(new Date()) };
}

/** No control characters: Postgres cannot store a NUL, and nobody can read the others on a receipt. */
function isPlainText(value: unknown, maxChars: number): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= maxChars && !/[\p{Cc}\p{Cs}]/u.test(value);
}

/** The entry that this source and ref booked before, if any. RequestError ref_conflict when it was asked for with other input. */
async function findFirst(tx: EntityManager, tenantId: string, entry: EntryRequest) {
  const [row] = await tx.query<(EntryRow & { input_hash: Buffer })[]>(
    `SELECT ${ENTRY_COLUMNS}, input_hash FROM journal_entry WHERE tenant_id = $1 AND source = $2 AND ref = $3`,
    [tenantId, entry.source, entry.ref],
  );
  if (!row) return undefined;
  if (!row.input_hash.equals(inputHash(entry))) {
    throw new RequestError(
      'ref_conflict',
      `${entry.source} ${entry.ref} was booked before with another amount or type.`,
    );
  }
  return ledgerEntry(row);
}
