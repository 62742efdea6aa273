import { Inject, Injectable } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import {
  formatCents,
  MAX_ENTRY_CENTS,
  NANOS_PER_CENT,
  newId,
  RequestError,
  UnavailableError,
  type RequestOf,
} from '@tollgate/contracts';
import { enqueue, type Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { changedRows, query, transaction } from '@tollgate/postgres';
import { logger } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { BillingDataSource } from '../database';
import { assertNamed, bookEntry, findFirst, type Booked, type BookingOptions } from '../ledger/booking';
import { lockBooks, saveBooks } from '../ledger/books-store';
import { balanceUpdate, clearingCents, refundableCents, type Books } from '../ledger/core/books';
import type { EntryRequest } from '../ledger/core/entry';
import { periodOf } from '../ledger/core/period';
import { isBroken } from '../ledger/is-broken';
import { BILLING_OPTIONS } from '../options';
import { isClosed } from '../tenants/tenant-closed';
import { bookLastCent, bookWithLastCent, lastCentToWriteOff } from './last-cent';

/**
 * An intent of this age belongs to a debit that will not be booked: its process died, or it waited for the books and
 * will be refused.
 */
const ABANDONED_AFTER_MS = 10_000;
const MAX_GIVEN_BACK_A_ROUND = 100;
/**
 * The most attempts of a withdrawal of `all`: the store may have less each time, because requests run. They take at
 * most their holds.
 */
const MAX_WITHDRAWALS = 5;

type Refund = RequestOf<'billing.credit.refund'>;
type Adjust = RequestOf<'billing.credit.adjust'>;
type AuditedBooking = Pick<BookingOptions, 'by' | 'action'>;

/**
 * Money out, and corrections. Requests run on what the admission store knows, so a debit is withdrawn there before the
 * books have it:
 *
 * 1. Commit the intent.
 * 2. Lock the tenant's books and claim the intent, so that nobody gives it up meanwhile.
 * 3. Withdraw the amount from the store, all or nothing, from what requests neither hold nor owe. The store withholds
 *    the amount until it gets the next version of the books.
 * 4. Book the entry as that version, with its balance update. This commits together with the claim.
 *
 * If anything fails after step 3, the store gets a version without the debit, at once or from `giveBackAbandoned`. So
 * credit is neither spent twice nor lost.
 */
@Injectable()
export class MoneyOut {
  /** Where the next round of `giveBackAbandoned` continues. */
  private givenBackTo = '';

  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    private readonly admission: AdmissionStore,
    /** `now`: the clock that decides the month. `currency`: for messages. */
    @Inject(BILLING_OPTIONS)
    private readonly options: { postingIntervalMs: number; now: () => Date; currency: () => string },
  ) {}

  /**
   * `all` takes what requests neither hold nor owe, and of a closed tenant the last cent as well (last-cent.ts).
   * @throws RequestError invalid_amount (not a whole number from 1 to 10^12), invalid_parameter (source, ref, reason),
   * not_found (tenant), ref_conflict, insufficient_credit; UnavailableError when auth or the admission store does not
   * answer
   */
  async refund({ tenantId, amountCents, source, ref, reason, by }: Refund): Promise<Booked> {
    if (amountCents !== 'all' && (!isAmount(amountCents) || amountCents < 1)) throw new RequestError('invalid_amount');
    assertNamed({ source, ref, ...(reason === undefined ? {} : { reason }) });
    const entry = this.entryOf('refund', amountCents === 'all' ? amountCents : -amountCents, { source, ref, reason });
    return this.debit(tenantId, entry, { by, action: 'credit.refund' });
  }

  /**
   * `all` takes the balance to zero, up or down. @throws like `refund`; invalid_amount for zero, and for a balance
   * beyond 2^53 − 1
   */
  async adjust({ tenantId, amountCents, source, ref, reason, allowDebt = false, by }: Adjust): Promise<Booked> {
    if (amountCents !== 'all' && (!isAmount(amountCents) || amountCents === 0))
      throw new RequestError('invalid_amount');
    if (typeof reason !== 'string') throw new RequestError('invalid_parameter', 'reason is required.');
    assertNamed({ source, ref, reason });
    const entry = this.entryOf('adjustment', amountCents, { source, ref, reason });
    const change = { by, action: 'credit.adjust' } as const;
    const isDebit = amountCents === 'all' || (amountCents < 0 && !allowDebt);
    return isDebit ? this.debit(tenantId, entry, change) : this.enter(tenantId, entry, change);
  }

  /**
   * Gives back withdrawals for debits that were never booked. Returns their number. A tenant whose books refuse keeps
   * its own, and no other tenant's: a round continues where the last one ended, and begins again after the last row.
   */
  async giveBackAbandoned(): Promise<number> {
    const rows = await query<{ id: string; tenant_id: string }>(
      this.dataSource,
      `SELECT id, tenant_id FROM withdrawal_intent
       WHERE created_at < now() - $1 * interval '1 millisecond' AND id > $3
       ORDER BY id LIMIT $2`,
      [ABANDONED_AFTER_MS, MAX_GIVEN_BACK_A_ROUND, this.givenBackTo],
    );
    let given = 0;
    for (const { id, tenant_id: tenantId } of rows) {
      this.givenBackTo = id;
      try {
        await this.giveBack(id, tenantId);
        given += 1;
      } catch (error) {
        if (!isBroken(error)) throw error;
        const message = 'giving back a withdrawal violates a ledger rule: run reconcile';
        logger('billing').error({ err: error, tenantId }, message);
      }
    }
    if (rows.length < MAX_GIVEN_BACK_A_ROUND) this.givenBackTo = '';
    return given;
  }

  private entryOf(
    type: 'refund' | 'adjustment',
    amountCents: number | 'all',
    { source, ref, reason }: { source: string; ref: string; reason: string | undefined },
  ): EntryRequest {
    // `debit` replaces the amount of `all`, when it has locked the books.
    const amount = amountCents === 'all' ? { amountCents: 0n, all: true } : { amountCents: BigInt(amountCents) };
    return { type, ...amount, source, ref, reason, period: periodOf(this.options.now()) };
  }

  /** Books an entry that needs no withdrawal: money in, or a debt that a person allows. */
  private async enter(tenantId: string, entry: EntryRequest, change: AuditedBooking): Promise<Booked> {
    await this.services.request('auth.tenants.get', { tenantId });
    return transaction(this.dataSource, async (tx) => {
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      const first = await findFirst(tx, books, entry);
      return first ?? bookEntry(tx, books, entry, { ...this.options, ...change });
    });
  }

  private async debit(tenantId: string, entry: EntryRequest, change: AuditedBooking): Promise<Booked> {
    await this.services.request('auth.tenants.get', { tenantId });
    const intent = newId('msg');
    await query(this.dataSource, 'INSERT INTO withdrawal_intent (id, tenant_id) VALUES ($1, $2)', [intent, tenantId]);
    let mayBeWithdrawn = false;
    try {
      return await transaction(this.dataSource, async (tx) => {
        const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
        if (!(await claim(tx, intent))) throw new UnavailableError('the debit waited too long for the books');
        const first = await findFirst(tx, books, entry);
        if (first) return first;
        // Whether the last cent goes as well.
        const closed = entry.all === true && (await isClosed(this.services, tenantId));
        let amountCents = entry.all ? clearingCents(books, { closed }) : entry.amountCents;
        const options = { ...this.options, ...change };
        // Only an adjustment writes off a debt. It takes nothing out of the store.
        if (entry.all && entry.type === 'adjustment' && amountCents > 0n)
          return bookEntry(tx, books, { ...entry, amountCents }, options);
        let usedNanos = closed ? await lastCentToWriteOff(this.admission, books) : 0n;
        if (usedNanos > 0n && amountCents === 0n) return bookLastCent(tx, books, entry, usedNanos, options);
        if (amountCents >= 0n || -amountCents > refundableCents(books)) throw this.insufficient(refundableCents(books));
        // After an error the store may have withdrawn the amount. A refusal says that this attempt did not, but an
        // earlier attempt of this transaction may have.
        const before = mayBeWithdrawn;
        for (let attempt = 1; ; attempt++) {
          mayBeWithdrawn = true;
          const availableCents = await this.withdraw(books, amountCents);
          if (availableCents === null) break;
          mayBeWithdrawn = before;
          if (!entry.all || availableCents === 0n || attempt === MAX_WITHDRAWALS)
            throw this.insufficient(availableCents);
          amountCents = -availableCents;
          // Some credit stays, so the last cent is not written off.
          usedNanos = 0n;
        }
        const rest = { ...entry, amountCents };
        if (usedNanos > 0n) return bookWithLastCent(tx, books, rest, usedNanos, options);
        return bookEntry(tx, books, rest, options);
      });
    } catch (error) {
      await this.undo(intent, tenantId, mayBeWithdrawn);
      throw error;
    }
  }

  /**
   * Withdraws the amount from the admission store, for the next version of the books. Null if it did, otherwise the
   * available amount in whole cents.
   */
  private async withdraw(books: Books, amountCents: bigint): Promise<bigint | null> {
    const { tenantId, version } = books;
    const withdrawal = { tenantId, version: version + 1n, nanos: -amountCents * NANOS_PER_CENT };
    let result = await this.admission.withdraw(withdrawal);
    if (result.kind === 'refused') {
      // A recent payment may still be on its way to the store.
      const { balanceNanos, suspended } = balanceUpdate(books, []);
      await this.admission.applyBalanceUpdates([
        { tenantId, version, balanceNanos: BigInt(balanceNanos), releases: [], suspended },
      ]);
      result = await this.admission.withdraw(withdrawal);
    }
    if (result.kind === 'withdrawn') return null;
    if (result.kind === 'overtaken')
      throw new UnavailableError(`the admission store is ahead of the books of ${tenantId}`);
    return result.availableNanos > 0n ? result.availableNanos / NANOS_PER_CENT : 0n;
  }

  /**
   * Cleans up after a failed debit. Does not throw, because the caller must get the error of the debit. What fails here
   * is repeated by `giveBackAbandoned`.
   */
  private async undo(intent: string, tenantId: string, mayBeWithdrawn: boolean): Promise<void> {
    try {
      if (mayBeWithdrawn) await this.giveBack(intent, tenantId);
      else await claim(this.dataSource.manager, intent);
    } catch (error) {
      logger('billing').warn({ err: error, tenantId }, 'a withdrawal could not be reversed; retrying');
    }
  }

  /**
   * Gives a withdrawal back, unless its debit was booked after all. The store withholds the amount until it gets the
   * next version of the books. This makes that version, without the debit.
   */
  private async giveBack(intent: string, tenantId: string): Promise<void> {
    await transaction(this.dataSource, async (tx) => {
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      if (!(await claim(tx, intent))) return;
      const moved = { ...books, version: books.version + 1n };
      await saveBooks(tx, [moved], this.options);
      await enqueue(tx, 'credit-news', [balanceUpdate(moved, [])]);
    });
  }

  private insufficient(availableCents: bigint): RequestError {
    if (availableCents <= 0n)
      return new RequestError('insufficient_credit', 'No credit is available, so nothing can be taken.');
    const available = formatCents(availableCents, this.options.currency());
    return new RequestError('insufficient_credit', `Only ${available} is available. Take at most this amount.`);
  }
}

/** Takes the intent of a debit. False if it is gone: the debit was booked, refused or given back. */
async function claim(tx: EntityManager, intent: string): Promise<boolean> {
  return (await changedRows(tx, 'DELETE FROM withdrawal_intent WHERE id = $1', [intent])) === 1;
}

function isAmount(amountCents: unknown): amountCents is number {
  return Number.isSafeInteger(amountCents) && Math.abs(amountCents as number) <= MAX_ENTRY_CENTS;
}
