import { Inject, Injectable } from '@nestjs/common';
import { MAX_ENTRY_CENTS, RequestError, type RequestOf } from '@tollgate/contracts';
import type { Requests } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { transaction } from '@tollgate/postgres';
import { BillingDataSource } from '../database';
import { assertNamed, bookEntry, findFirst, type Booked } from '../ledger/booking';
import { lockBooks } from '../ledger/books-store';
import type { EntryRequest } from '../ledger/core/entry';
import { periodOf } from '../ledger/core/period';
import { BILLING_OPTIONS } from '../options';
import { isClosed } from '../tenants/tenant-closed';

type AddCredit = RequestOf<'billing.credit.add'>;

/**
 * Money in. Idempotent by tenant, source and ref: a repeat returns the first entry and changes nothing. Entry, books
 * and balance update commit together.
 */
@Injectable()
export class TopUps {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(ServiceClient) private readonly services: Requests,
    /** `now`: the clock that decides the month. */
    @Inject(BILLING_OPTIONS) private readonly options: { postingIntervalMs: number; now: () => Date },
  ) {}

  /**
   * @throws RequestError invalid_amount (not a whole number from 1 to 10^12, or a balance beyond 2^53 − 1),
   * invalid_parameter (source, ref, reason), not_found (tenant), ref_conflict, tenant_closed;
   * UnavailableError when auth does not answer
   */
  async add(request: AddCredit): Promise<Booked> {
    const { tenantId, by } = request;
    const entry = validated(request, this.options.now());
    await this.services.request('auth.tenants.get', { tenantId });
    return transaction(this.dataSource, async (tx) => {
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      const first = await findFirst(tx, books, entry);
      if (first) return first;
      // Nothing could spend it. A correction of its balance is an adjustment.
      if (await isClosed(this.services, tenantId)) throw new RequestError('tenant_closed');
      return bookEntry(tx, books, entry, { ...this.options, by, action: 'credit.add' });
    });
  }
}

function validated({ amountCents, source, ref, reason }: AddCredit, now: Date): EntryRequest {
  if (!Number.isSafeInteger(amountCents) || amountCents < 1 || amountCents > MAX_ENTRY_CENTS) {
    throw new RequestError('invalid_amount');
  }
  const why = reason === undefined ? {} : { reason };
  assertNamed({ source, ref, ...why });
  return { type: 'topup', amountCents: BigInt(amountCents), source, ref, ...why, period: periodOf(now) };
}
