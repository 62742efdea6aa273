import { Controller, Get, Param, Query } from '@nestjs/common';
import type { BillingSummary, ReplyOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { AllowInTenant } from '../access/allow';
import { queryOf } from '../http/body';
import { ConsoleError } from '../http/errors';
import { pageOf } from './fields';

const readPage = queryOf(pageOf('ent'));
const readRequests = queryOf(pageOf('req'));

/** The credit of a tenant: its entries, the requests behind them, and where a request is in the books. */
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

  /** A request from its price to its invoice. `books` is null until its charge has arrived. */
  @Get('requests/:requestId')
  @AllowInTenant('requests.read')
  async request(
    @Param('tenantId') tenantId: string,
    @Param('requestId') requestId: string,
  ): Promise<{
    event: ReplyOf<'metering.usage.events'>['data'][number];
    books: ReplyOf<'billing.request.entry'> | null;
  }> {
    const { data } = await this.services.request('metering.usage.events', { ids: [requestId] });
    const [event] = data;
    if (event?.tenantId !== tenantId) throw new ConsoleError('not_found');
    const books = await this.services.request('billing.request.entry', { requestId }).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'not_found') return null;
      throw error;
    });
    return { event, books };
  }
}
