import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { ifFound, REFUSALS_KEPT_DAYS, type UsageQuery } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { ApiError } from '../../http/api-error';
import { readOperatorUsageQuery } from '../../http/account/usage-query';
import { queryCheck } from '../../http/validate';
import { byNames, groupsOfUsage, namesOfKeys } from './usage-by-names';
import { OPERATOR_PREFIX } from '../prefix';
import { requestIdOf } from '../request-id';
import { NamedRequestsQuery, RequestsQuery } from '../schemas';
import { SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { requireId } from '../require-id';

const DAY_MS = 24 * 60 * 60_000;
const checkPage = queryCheck(RequestsQuery);
const checkNamed = queryCheck(NamedRequestsQuery);

/** Finds the requests that a ledger entry debits, and the ledger entry and invoice of a request. */
@Controller(OPERATOR_PREFIX)
@UseGuards(SecretGuard)
export class OperatorUsageController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  /** Usage of the tenant, also by what only an operator groups by. */
  @Get('tenants/:tenantId/usage')
  async summary(@Param('tenantId') tenantId: string, @Query() query: Record<string, unknown>) {
    const { groupBy, ...wanted } = readOperatorUsageQuery(tenantId, query, Date.now());
    await this.tenants.get(tenantId);
    const asked = { ...wanted, groupBy: groupsOfUsage(groupBy) };
    const [usage, refusals] = await Promise.all([
      this.services.request('metering.usage.query', asked),
      this.refusals(wanted),
    ]);
    const summary = { ...usage, refusals };
    if (groupBy.includes('owner') || groupBy.includes('tag')) {
      const names = await namesOfKeys(this.services, new Set(summary.groups.map(({ key }) => key!)));
      return {
        data: { ...summary, groups: byNames(summary.groups, groupBy, names), currency: this.config.current.currency },
      };
    }
    return { data: { ...summary, currency: this.config.current.currency } };
  }

  @Get('entries/:entryId/requests')
  async requests(@Param('entryId') entryId: string, @Query() query: unknown) {
    const page = checkPage(query);
    requireId('ent', entryId);
    const covered = await this.services.request('billing.entry.requests', { entryId, ...page });
    const { entry, carriedInNanos, carriedOutNanos, requests, nextCursor } = covered;
    const ids = requests.map(({ id }) => id);
    const { data } = await this.services.request('metering.usage.events', { ids });
    const events = new Map(data.map((event) => [event.id, event]));
    return {
      data: requests.map((charge) => ({ ...charge, event: events.get(charge.id) ?? null })),
      entry,
      carriedInNanos,
      carriedOutNanos,
      currency: this.config.current.currency,
      nextCursor,
    };
  }

  @Get('requests')
  async named(@Query() query: unknown) {
    const { data } = await this.services.request('metering.requests.named', checkNamed(query));
    return { data };
  }

  /** Parts that do not exist yet are null. */
  @Get('requests/:requestId')
  async request(@Param('requestId') name: string) {
    const requestId = requestIdOf(name);
    if (requestId === null) throw new ApiError('not_found', 'No such request.');
    const [event, books] = await Promise.all([
      this.event(requestId),
      ifFound(this.services.request('billing.request.entry', { requestId })),
    ]);
    if (!event && !books) throw new ApiError('not_found', 'No usage is recorded for this request.');
    const { charge = null, carriedOn = false, entry = null, invoice = null, monthClosed = false } = books ?? {};
    const { currency } = this.config.current;
    return { data: { event, charge, carriedOn, entry, invoice, monthClosed, currency } };
  }

  /**
   * Requests without usage, which are in no group of the usage: refused ones, and those that no backend answered. Null
   * for a single model, because they are counted without their model.
   */
  private async refusals({ tenantId, from, to, keyId, model }: Omit<UsageQuery, 'groupBy'>) {
    if (model !== undefined) return null;
    const fromMs = Date.parse(from);
    // Otherwise the kept days of a range that ends after now would lie after now.
    const untilMs = Math.max(fromMs, Math.min(Date.parse(to), Date.now()));
    const sinceMs = Math.max(fromMs, untilMs - REFUSALS_KEPT_DAYS * DAY_MS);
    const range = { from: new Date(sinceMs).toISOString(), to: new Date(untilMs).toISOString() };
    const wanted = { tenantId, ...range, step: 'all' as const, ...(keyId !== undefined && { keyId }) };
    const { points } = await this.services.request('metering.refusals.series', wanted);
    const counts = points.map(({ code, requests }) => ({ code, requests }));
    return counts.sort((one, other) => other.requests - one.requests);
  }

  private async event(id: string) {
    const { data } = await this.services.request('metering.usage.events', { ids: [id] });
    return data[0] ?? null;
  }
}
