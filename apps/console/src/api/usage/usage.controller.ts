import { Controller, Get, Param, Query } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { MAX_SERIES_NAMES, MAX_SERIES_POINTS } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import { AllowInTenant } from '../../access/allow';
import { queryOf } from '../../http/body';
import type { ModelList, Overview, Plan, UsageOfRange } from '../answers';
import { KeyIdField, ModelField } from '../fields';
import { keyNames } from '../key-names';
import { modelRows } from './model-rows';
import { Overviews, totalsOf } from './overviews';

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

const STEP_MS = { hour: 3_600_000, day: 86_400_000 };
/** Hours of keys cost the most to read: with more of them, a page waits for longer than 300 ms (ADR 0032). */
const MAX_POINTS = { hour: MAX_SERIES_POINTS / 2, day: MAX_SERIES_POINTS };

/**
 * Models or keys with their own points: as many as fit into one answer, with the others and a first and a last step
 * that are widened.
 */
function topOf(rangeMs: number, step: 'hour' | 'day'): number {
  const steps = Math.ceil(Math.max(rangeMs, 0) / STEP_MS[step]) + 1;
  return Math.min(Math.max(Math.floor(MAX_POINTS[step] / steps) - 1, 1), MAX_SERIES_NAMES);
}

/** What a tenant used, and what it can use. */
@Controller('console/api/tenants/:tenantId')
export class UsageController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
    private readonly overviews: Overviews,
  ) {}

  @Get('overview')
  @AllowInTenant('usage.read')
  overview(@Param('tenantId') tenantId: string): Promise<Overview> {
    return this.overviews.of(tenantId);
  }

  /** At most 400 days by day, or 32 by hour. Models or keys that do not fit into one answer share unnamed points. */
  @Get('usage')
  @AllowInTenant('usage.read')
  async usage(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<UsageOfRange> {
    const { from, to, ...rest } = readUsage(query);
    const [start, end] = [new Date(from), new Date(to)];
    const series = await this.services.request('metering.usage.series', {
      ...rest,
      tenantId,
      from: start.toISOString(),
      to: end.toISOString(),
      top: topOf(end.getTime() - start.getTime(), rest.step),
    });
    const totals = totalsOf(series);
    // A filter may have the id of any key. Without usage here, it is not a key of this tenant.
    const filtered = rest.keyId !== undefined && totals.requests > 0 ? [rest.keyId] : [];
    const ids = [...(rest.by === 'key' ? series.names : []), ...filtered];
    return { ...series, totals, keyNames: await keyNames(this.services, ids) };
  }

  @Get('models')
  @AllowInTenant('models.read')
  async models(@Param('tenantId') tenantId: string): Promise<ModelList> {
    const { plan } = await this.services.request('auth.tenants.get', { tenantId });
    const { plans } = this.config.current;
    const allowed = plans.find(({ id }) => id === plan)?.profiles[0]?.models ?? [];
    const data = modelRows(this.config.current);
    const first = data.find(({ id, kind }) => kind === 'chat' && (allowed.includes('*') || allowed.includes(id)));
    return { data, firstChat: first?.id ?? null };
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
