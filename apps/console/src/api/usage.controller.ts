import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { UsageSeries } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { AllowInTenant } from '../access/allow';
import { queryOf } from '../http/body';
import type { ModelRow, Overview, Plan, Usage, UsageTotals } from './answers';
import { KeyIdField, ModelField } from './fields';
import { modelRows } from './model-rows';

const DAY_MS = 24 * 60 * 60_000;
const OVERVIEW_DAYS = 30;
/** More series than colours cannot be told apart in a chart: the others are one. */
const SERIES = 8;

const instant = Type.String({ format: 'date-time' });
const readUsage = queryOf(
  Type.Object({
    from: instant,
    to: instant,
    step: Type.Unsafe<'hour' | 'day'>({ type: 'string', enum: ['hour', 'day'] }),
    by: Type.Optional(Type.Unsafe<'model' | 'key'>({ type: 'string', enum: ['model', 'key'] })),
    model: Type.Optional(ModelField),
    keyId: Type.Optional(KeyIdField),
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
    const range = (start: number, end: number) => ({
      tenantId,
      from: new Date(start).toISOString(),
      to: new Date(end).toISOString(),
    });
    const before = range(from - (to - from), from);
    const [billing, { spendableNanos }, usage, earlier, refused] = await Promise.all([
      this.services.request('billing.summary', { tenantId, limit: 1 }),
      this.services.request('billing.credit.spendable', { tenantId }),
      this.services.request('metering.usage.series', { ...range(from, to), step: 'day', by: 'model', top: SERIES }),
      this.services.request('metering.usage.series', { ...before, step: 'all' }),
      this.services.request('metering.refusals.series', { ...range(from, to), step: 'all' }),
    ]);
    return {
      balanceCents: billing.balanceCents,
      carriedNanos: billing.carriedNanos,
      spendableNanos,
      usage: { ...usage, totals: totalsOf(usage) },
      before: totalsOf(earlier),
      refusals: refused.points
        .map(({ code, requests }) => ({ code, requests }))
        .sort((one, other) => other.requests - one.requests),
    };
  }

  /** At most 400 days by day, or 32 by hour. */
  @Get('usage')
  @AllowInTenant('usage.read')
  async usage(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<Usage> {
    const { from, to, ...rest } = readUsage(query);
    const series = await this.services.request('metering.usage.series', {
      ...rest,
      tenantId,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      top: SERIES,
    });
    return { ...series, totals: totalsOf(series) };
  }

  @Get('models')
  @AllowInTenant('models.read')
  models(): { data: ModelRow[] } {
    return { data: modelRows(this.config.current) };
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

function totalsOf({ points }: UsageSeries): UsageTotals {
  const sum = (field: Exclude<keyof UsageTotals, 'costNanos'>) =>
    points.reduce((total, point) => total + point[field], 0);
  return {
    requests: sum('requests'),
    failed: sum('failed'),
    clientClosed: sum('clientClosed'),
    promptTokens: sum('promptTokens'),
    cachedTokens: sum('cachedTokens'),
    completionTokens: sum('completionTokens'),
    costNanos: points.reduce((total, { costNanos }) => total + BigInt(costNanos), 0n).toString(),
  };
}
