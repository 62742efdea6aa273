import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { UsageSummary } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { AllowInTenant } from '../access/allow';
import { queryOf } from '../http/body';
import { ConsoleError } from '../http/errors';
import type { ModelRow, Overview, Plan } from './answers';

const DAY_MS = 24 * 60 * 60_000;
const OVERVIEW_DAYS = 30;
/** The most days that a usage query may cover. */
const MAX_RANGE_DAYS = 400;

const instant = Type.String({ format: 'date-time' });
const readUsage = queryOf(
  Type.Object({
    from: instant,
    to: instant,
    groupBy: Type.Optional(Type.String({ pattern: '^(model|key|day|hour)(,(model|key|day|hour))*$' })),
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    keyId: Type.Optional(Type.String({ pattern: '^key_[0-7][0-9a-hjkmnp-tv-z]{25}$' })),
  }),
);

/** What a tenant used, and what it can use. */
@Controller('console/api/tenants/:tenantId')
export class UsageController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  @Get('overview')
  @AllowInTenant('usage.read')
  async overview(@Param('tenantId') tenantId: string): Promise<Overview> {
    // Whole days, so that the bars of the chart are days.
    const to = Date.now();
    const from = Math.floor(to / DAY_MS) * DAY_MS - (OVERVIEW_DAYS - 1) * DAY_MS;
    const before = from - (to - from);
    const range = (start: number, end: number) => ({
      tenantId,
      from: new Date(start).toISOString(),
      to: new Date(end).toISOString(),
    });
    const [billing, { spendableNanos }, now, earlier, keys] = await Promise.all([
      this.services.request('billing.summary', { tenantId, limit: 1 }),
      this.services.request('billing.credit.spendable', { tenantId }),
      this.services.request('metering.usage.query', { ...range(from, to), groupBy: ['day', 'model'] }),
      this.services.request('metering.usage.query', { ...range(before, from), groupBy: [] }),
      this.services.request('auth.keys.list', { tenantId, limit: 200 }),
    ]);
    return {
      balanceCents: billing.balanceCents,
      carriedNanos: billing.carriedNanos,
      spendableNanos,
      period: { from: now.from, to: now.to, totals: now.totals, before: earlier.totals },
      days: now.groups,
      activeKeys: keys.data.filter(({ status }) => status === 'active').length,
    };
  }

  @Get('usage')
  @AllowInTenant('usage.read')
  async usage(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<UsageSummary> {
    const { from, to, groupBy, model, keyId } = readUsage(query);
    const [start, end] = [Date.parse(from), Date.parse(to)];
    if (start >= end || end - start > MAX_RANGE_DAYS * DAY_MS)
      throw new ConsoleError('invalid_parameter', `from must be before to, by at most ${MAX_RANGE_DAYS} days.`);
    const groups = new Set((groupBy ?? '').split(',').filter((group) => group !== ''));
    return this.services.request('metering.usage.query', {
      tenantId,
      from: new Date(start).toISOString(),
      to: new Date(end).toISOString(),
      groupBy: [...groups] as ('model' | 'key' | 'day' | 'hour')[],
      ...(model !== undefined && { model }),
      ...(keyId !== undefined && { keyId }),
    });
  }

  @Get('models')
  @AllowInTenant('models.read')
  models(): { data: ModelRow[] } {
    const data = this.config.current.models.map(({ id, kind, ownedBy, contextTokens, maxOutputTokens, price }) => ({
      id,
      kind,
      ownedBy,
      contextTokens,
      maxOutputTokens: maxOutputTokens ?? contextTokens,
      price: {
        input: price.input,
        cachedInput: price.cachedInput ?? null,
        output: price.output,
        request: price.request,
      },
    }));
    return { data };
  }

  /** The plan of the tenant, for the choice of a key's profile. */
  @Get('plan')
  @AllowInTenant('keys.read')
  async plan(@Param('tenantId') tenantId: string): Promise<Plan> {
    const { plan } = await this.services.request('auth.tenants.get', { tenantId });
    const found = this.config.current.plans.find(({ id }) => id === plan);
    return { id: plan, profiles: found?.profiles.map(({ id }) => id) ?? [] };
  }
}
