import { Controller, Get, Param, Query } from '@nestjs/common';
import type { BillingSummary, ReplyOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant } from '../access/allow';
import { queryOf } from '../http/body';
import { ConsoleError } from '../http/errors';
import { pageOf } from './fields';

const readPage = queryOf(pageOf('ent'));
const readRequests = queryOf(pageOf('req'));

/** The credit of a tenant: its entries, and the requests behind them. */
@Controller('console/api/tenants/:tenantId')
export class MoneyController {
  constructor(private readonly services: ServiceClient) {}

  @Get('credit')
  @AllowInTenant('credit.read')
  credit(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<BillingSummary> {
    return this.services.request('billing.summary', { tenantId, ...readPage(query) });
  }

  /** The requests that a usage entry debits. An entry of another tenant does not exist. */
  @Get('credit/:entryId/requests')
  @AllowInTenant('credit.read')
  async entry(
    @Param('tenantId') tenantId: string,
    @Param('entryId') entryId: string,
    @Query() query: unknown,
  ): Promise<ReplyOf<'billing.entry.requests'>> {
    const found = await this.services.request('billing.entry.requests', { entryId, ...readRequests(query) });
    if (found.entry.tenantId !== tenantId) throw new ConsoleError('not_found');
    return found;
  }
}
