import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import type { BillingSummary } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ManagementApi } from './management-api';
import { MANAGEMENT_PREFIX } from './prefix';
import { BillingQuery } from '../http/account/schemas';
import { type Caller, FromCaller, NeedsScope, TokenGuard } from './token-guard';
import { queryCheck } from '../http/validate';

const checkQuery = queryCheck(BillingQuery);

/** `/billing`: balance, ledger and invoices. The remainder below a cent is not shown. */
@Controller(`${MANAGEMENT_PREFIX}/billing`)
@ManagementApi()
@UseGuards(TokenGuard)
export class BillingController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @NeedsScope('billing:read')
  async read(@FromCaller() { tenantId }: Caller, @Query() query: unknown) {
    const summary = await this.services.request('billing.summary', { tenantId, ...checkQuery(query) });
    return { data: toBilling(summary), nextCursor: summary.nextCursor };
  }
}

/** Exactly the documented fields, whatever else the summary has. */
function toBilling({ balanceCents, entries, invoices }: BillingSummary) {
  return {
    balanceCents,
    entries: entries.map(({ id, type, amountCents, source, ref, createdAt }) => ({
      id,
      type,
      amountCents,
      source,
      ref,
      createdAt,
    })),
    invoices: invoices.map(({ period, amountCents, status, accountingNumber, createdAt }) => ({
      period,
      amountCents,
      status,
      accountingNumber,
      createdAt,
    })),
  };
}
