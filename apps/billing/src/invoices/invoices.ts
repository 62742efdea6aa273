import { Inject, Injectable } from '@nestjs/common';
import {
  INVOICE_SOURCE,
  pageRows,
  RequestError,
  toPage,
  type IssuedInvoice,
  type Page,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { EntityManager } from 'typeorm';
import { BillingDataSource } from '../database';
import { assertReason, bookEntry, findFirst, type Booked } from '../ledger/booking';
import { lockBooks } from '../ledger/books-store';
import { VOID_REF, type EntryRequest } from '../ledger/core/entry';
import { periodOf } from '../ledger/core/period';
import { BILLING_OPTIONS } from '../options';

interface InvoiceRow {
  accounting_number: string;
  tenant_id: string;
  period: string;
  amount_cents: string;
  created_at: Date;
  voided_at: Date | null;
}

const SELECT_INVOICES = `
  SELECT i.accounting_number, i.tenant_id, i.period, i.amount_cents, i.created_at, v.created_at AS voided_at
  FROM invoice i LEFT JOIN invoice_void v USING (accounting_number)`;

/** Reads issued invoices, and makes them void. */
@Injectable()
export class Invoices {
  constructor(
    private readonly dataSource: BillingDataSource,
    /** `now`: the clock that decides the month. */
    @Inject(BILLING_OPTIONS) private readonly options: { postingIntervalMs: number; now: () => Date },
  ) {}

  /** By number, newest first. RequestError invalid_parameter. */
  async list(request: RequestOf<'billing.invoices.list'>): Promise<Page<IssuedInvoice>> {
    const { tenantId = null, period = null, after } = request;
    const limit = pageRows(request.limit);
    if (after !== undefined && !/^\d{1,16}$/.test(after))
      throw new RequestError('invalid_parameter', 'after must be the number of an invoice.');
    const rows = await query<InvoiceRow>(
      this.dataSource,
      `${SELECT_INVOICES}
       WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR period = $2)
         AND ($3::bigint IS NULL OR accounting_number < $3)
       ORDER BY accounting_number DESC LIMIT $4`,
      [tenantId, period, after ?? null, limit + 1],
    );
    return toPage(rows.map(issued), limit, ({ accountingNumber }) => String(accountingNumber));
  }

  /** RequestError not_found, also for an invoice of another tenant. */
  async get({ tenantId, accountingNumber }: RequestOf<'billing.invoices.get'>): Promise<IssuedInvoice> {
    const invoice = await find(this.dataSource.manager, accountingNumber);
    if (invoice.tenantId !== tenantId) throw new RequestError('not_found', 'No such invoice.');
    return invoice;
  }

  /**
   * Makes an invoice void and gives its amount back to the tenant by a reversing entry. A repeat returns the first
   * entry.
   * @throws RequestError not_found, invalid_parameter (reason), ref_conflict (already void, for another reason),
   * invalid_amount (the balance would exceed 2^53 − 1)
   */
  async void({
    accountingNumber,
    reason,
    by,
  }: RequestOf<'billing.invoices.void'>): Promise<Omit<Booked, 'reply'> & { reply: ReplyOf<'billing.invoices.void'> }> {
    if (typeof reason !== 'string') throw new RequestError('invalid_parameter', 'reason is required.');
    assertReason(reason);
    return transaction(this.dataSource, async (tx) => {
      const invoice = await find(tx, accountingNumber);
      const { tenantId } = invoice;
      const books = (await lockBooks(tx, [tenantId])).get(tenantId)!;
      const entry: EntryRequest = {
        type: 'adjustment',
        amountCents: BigInt(invoice.amountCents),
        source: INVOICE_SOURCE,
        ref: `${VOID_REF}${accountingNumber}`,
        period: periodOf(this.options.now()),
        reason,
        contra: 'usage_revenue',
      };
      const first = await findFirst(tx, books, entry);
      const change = { by, action: 'invoice.void', target: String(accountingNumber) } as const;
      const { reply, dueInMs, update }: Booked =
        first ?? (await bookEntry(tx, books, entry, { ...this.options, ...change }));
      if (!first)
        await query(tx, 'INSERT INTO invoice_void (accounting_number, entry_id) VALUES ($1, $2)', [
          accountingNumber,
          reply.entry.id,
        ]);
      const { entry: booked, balanceCents } = reply;
      const answer = { entry: booked, balanceCents, invoice: await find(tx, accountingNumber) };
      return { reply: answer, dueInMs, update };
    });
  }
}

async function find(tx: EntityManager, accountingNumber: number): Promise<IssuedInvoice> {
  const [row] = Number.isSafeInteger(accountingNumber)
    ? await query<InvoiceRow>(tx, `${SELECT_INVOICES} WHERE accounting_number = $1`, [accountingNumber])
    : [];
  if (!row) throw new RequestError('not_found', 'No such invoice.');
  return issued(row);
}

function issued(row: InvoiceRow): IssuedInvoice {
  return {
    tenantId: row.tenant_id,
    period: row.period,
    amountCents: Number(row.amount_cents),
    status: row.voided_at ? 'void' : 'paid',
    accountingNumber: Number(row.accounting_number),
    createdAt: row.created_at.toISOString(),
    voidedAt: row.voided_at?.toISOString() ?? null,
  };
}
