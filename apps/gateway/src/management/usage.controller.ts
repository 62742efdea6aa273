import type { Static } from '@sinclair/typebox';
import { Controller, Get, Query, UseFilters, UseGuards } from '@nestjs/common';
import type { UsageGroupRow, UsageNumbers, UsageQuery as UsageRequest } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { EnvelopeFilter } from '../http/envelope';
import { MANAGEMENT_ERRORS, managementError } from './errors';
import { MANAGEMENT_PREFIX } from './routes';
import { UsageQuery } from '../http/account/schemas';
import { type Caller, FromCaller, NeedsScope, TokenGuard } from './token-guard';
import { parseInstant, queryCheck } from '../http/validate';

const checkQuery = queryCheck(UsageQuery);

/** `/usage`: the tenant's tokens and costs over a time, in total and grouped. */
@Controller(`${MANAGEMENT_PREFIX}/usage`)
@UseFilters(new EnvelopeFilter(MANAGEMENT_ERRORS, 'management'))
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

/**
 * The query string as metering wants it; without `from` and `to` this calendar month (UTC) until now. Error: invalid_parameter, also when
 * `from` is not before `to`.
 */
export function readUsageQuery(tenantId: string, query: Record<string, unknown>, nowMs: number): UsageRequest {
  const groupBy = query['groupBy'];
  const given: Static<typeof UsageQuery> = checkQuery({
    ...query,
    ...(groupBy !== undefined && { groupBy: String(groupBy).split(',') }),
  });
  const now = new Date(nowMs);
  const from = instant(given.from) ?? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  // At the very first millisecond of a month "until now" would be an empty time.
  const to = instant(given.to) ?? (given.from === undefined ? Math.max(nowMs, from + 1) : nowMs);
  if (from >= to)
    throw managementError('invalid_parameter', 'from must be before to. The default of to is the current time.');
  return {
    tenantId,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    groupBy: given.groupBy ?? [],
    ...(given.model !== undefined && { model: given.model }),
    ...(given.keyId !== undefined && { keyId: given.keyId }),
  };
}

function instant(text: string | undefined): number | null {
  return text === undefined ? null : parseInstant(text);
}

function toNumbers(numbers: UsageNumbers): UsageNumbers {
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

/** The group's fields first, then its numbers; fields that were not asked for are left out. */
function toGroup(row: UsageGroupRow): UsageGroupRow {
  const { model, key, day, hour } = row;
  return {
    ...(model !== undefined && { model }),
    ...(key !== undefined && { key }),
    ...(day !== undefined && { day }),
    ...(hour !== undefined && { hour }),
    ...toNumbers(row),
  };
}
