import { Controller, Get, Param, Query } from '@nestjs/common';
import { type BillingSummary, type LedgerEntry } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant } from '../../access/allow';
import { queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { InvoiceSheet, Receipt } from '../answers';
import { pageOf } from '../fields';
import { monthRange } from './months';
import { requireId } from '../../http/require-id';

const readPage = queryOf(pageOf('ent'));
const INVOICE_NUMBER = /^[1-9]\d{0,15}$/;
/** Further models of an invoice are summed in one line. */
const INVOICE_LINES = 200;

const readRequests = queryOf(pageOf('req'));

/** The credit of a tenant: its entries, and the requests behind them. */
@Controller('console/api/tenants/:tenantId')
export class MoneyController {
  constructor(private readonly services: ServiceClient) {}

  @Get('credit')
  @AllowInTenant('credit.read')
  async credit(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<BillingSummary> {
    const books = await this.services.request('billing.summary', { tenantId, ...readPage(query) });
    return { ...books, entries: books.entries.map(withoutReason) };
  }

  /** A ledger entry with the requests that it debits. An entry of another tenant does not exist. */
  @Get('credit/:entryId')
  @AllowInTenant('credit.read')
  async receipt(
    @Param('tenantId') tenantId: string,
    @Param('entryId') entryId: string,
    @Query() query: unknown,
  ): Promise<Receipt> {
    const page = readRequests(query);
    requireId('ent', entryId);
    const [{ entry, ...rest }, tenant] = await Promise.all([
      this.services.request('billing.entry.requests', { entryId, tenantId, ...page }),
      this.services.request('auth.tenants.get', { tenantId }),
    ]);
    // A former version of billing does not look at the tenant.
    if (entry.tenantId !== tenantId) throw new ConsoleError('not_found');
    return { ...rest, entry: withoutReason(entry), tenantName: tenant.name };
  }

  /** An invoice with the usage of its month by model. */
  @Get('invoices/:number')
  @AllowInTenant('credit.read')
  async invoice(@Param('tenantId') tenantId: string, @Param('number') number: string): Promise<InvoiceSheet> {
    if (!INVOICE_NUMBER.test(number)) throw new ConsoleError('not_found');
    const wanted = { tenantId, accountingNumber: Number(number) };
    const [invoice, tenant] = await Promise.all([
      this.services.request('billing.invoices.get', wanted),
      this.services.request('auth.tenants.get', { tenantId }),
    ]);
    const query = { tenantId, ...monthRange(invoice.period), step: 'all', by: 'model', top: INVOICE_LINES } as const;
    const { points } = await this.services.request('metering.usage.series', query);
    return { invoice, tenantName: tenant.name, lines: points };
  }
}

/** Why an operator made an entry is in the audit log of operators. */
function withoutReason<T extends LedgerEntry>(entry: T): Omit<T, 'reason'> {
  const shown: Partial<T> = { ...entry };
  delete shown.reason;
  return shown as Omit<T, 'reason'>;
}
