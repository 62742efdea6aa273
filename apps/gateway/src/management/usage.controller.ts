import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import type { UsageGroupRow, UsageNumbers } from '@tollgate/contracts';

/** What a tenant is shown. */
type Shown = Pick<
  UsageNumbers,
  'requests' | 'promptTokens' | 'completionTokens' | 'totalTokens' | 'costCents' | 'estimatedRequests'
>;
import { ServiceClient } from '@tollgate/messaging/nest';
import { ManagementApi } from './management-api';
import { MANAGEMENT_PREFIX } from './prefix';
import { readUsageQuery } from '../http/account/usage-query';
import { type Caller, FromCaller, NeedsScope, TokenGuard } from './token-guard';

/** `/usage`: the tenant's tokens and costs in a time range, in total and by group. */
@Controller(`${MANAGEMENT_PREFIX}/usage`)
@ManagementApi()
@UseGuards(TokenGuard)
export class UsageController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @NeedsScope('usage:read')
  async read(@FromCaller() { tenantId }: Caller, @Query() query: Record<string, unknown>) {
    const summary = await this.services.request('metering.usage.query', readUsageQuery(tenantId, query, Date.now()));
    return {
      data: {
        from: summary.from,
        to: summary.to,
        totals: toNumbers(summary.totals),
        groups: summary.groups.map(toGroup),
      },
    };
  }
}

function toNumbers(numbers: UsageNumbers): Shown {
  const { requests, promptTokens, completionTokens, totalTokens, costCents, estimatedRequests } = numbers;
  return {
    requests,
    promptTokens,
    completionTokens,
    totalTokens,
    costCents,
    ...(estimatedRequests !== undefined && { estimatedRequests }),
  };
}

/** The fields of the group, then its numbers. Fields that were not requested are left out. */
function toGroup(row: UsageGroupRow): Shown & Partial<UsageGroupRow> {
  const { model, key, day, hour } = row;
  return {
    ...(model !== undefined && { model }),
    ...(key !== undefined && { key }),
    ...(day !== undefined && { day }),
    ...(hour !== undefined && { hour }),
    ...toNumbers(row),
  };
}
