import { Controller, Get, Param, Put, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import type { Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, type PlanConfig } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller } from '../../access/allow';
import { bodyOf, queryOf } from '../../http/body';
import type { BudgetRow, BudgetList } from '../answers';
import { rowOf } from './budget-rows';
import { exact, pageOf } from '../fields';
import { requireId } from '../../http/require-id';

/** `default`: the budget of the configuration. Null: no budget. */
const readBudget = bodyOf(
  Type.Object(
    {
      budgetCents: Type.Union([
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
        Type.Literal('default'),
        Type.Null(),
      ]),
      /** Null: the thresholds of the configuration. */
      thresholdsPercent: Type.Optional(Type.Union([Type.Array(Type.Integer(), { maxItems: 100 }), Type.Null()])),
    },
    exact,
  ),
);
const readPage = queryOf(pageOf('key'));

/** Monthly budgets of a tenant and of its keys. A change is in force when it is answered. */
@Controller('console/api/tenants/:tenantId')
export class BudgetsController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  /** The tenant's budget, and the budgets of its keys that have their own. */
  @Get('budgets')
  @AllowInTenant('budgets.read')
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<BudgetList> {
    const page = readPage(query);
    const [plan, tenant, keys] = await Promise.all([
      this.planOf(tenantId),
      this.services.request('billing.budget.get', { tenantId, keyId: null }),
      this.services.request('billing.budget.keys', { tenantId, ...page }),
    ]);
    const ids = keys.data.map(({ keyId }) => keyId!);
    const names = ids.length === 0 ? [] : (await this.services.request('auth.keys.names', { ids })).data;
    const nameOf = new Map(names.map(({ id, name }) => [id, name]));
    return {
      tenant: rowOf(tenant, plan?.monthlyBudgetCents ?? null),
      // These have their own budget, so no default applies.
      keys: {
        data: keys.data.map((state) => ({ ...rowOf(state, null), keyName: nameOf.get(state.keyId!) ?? null })),
        nextCursor: keys.nextCursor,
      },
    };
  }

  @Put('budget')
  @AllowInTenant('budgets.write')
  async set(
    @Param('tenantId') tenantId: string,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<BudgetRow> {
    const plan = await this.planOf(tenantId);
    return this.put({ tenantId, keyId: null, by }, request, plan?.monthlyBudgetCents ?? null);
  }

  @Put('keys/:keyId/budget')
  @AllowInTenant('budgets.write')
  async setOfKey(
    @Param('tenantId') tenantId: string,
    @Param('keyId') keyId: string,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<BudgetRow> {
    requireId('key', keyId);
    const { profile } = await this.services.request('auth.keys.get', { tenantId, id: keyId });
    const plan = await this.planOf(tenantId);
    const byDefault = plan?.profiles.find(({ id }) => id === profile)?.monthlyBudgetCents ?? null;
    return this.put({ tenantId, keyId, by }, request, byDefault);
  }

  private async put(
    of: { tenantId: string; keyId: string | null; by: Author },
    request: FastifyRequest,
    byDefault: number | null,
  ): Promise<BudgetRow> {
    const { budgetCents, ...rest } = readBudget(request);
    const wanted = { ...of, ...rest, budgetCents: budgetCents ?? ('none' as const) };
    return rowOf(await this.services.request('billing.budget.set', wanted), byDefault);
  }

  /** Error: not_found (tenant). Undefined: the configuration no longer has the plan. */
  private async planOf(tenantId: string): Promise<PlanConfig | undefined> {
    const { plan } = await this.services.request('auth.tenants.get', { tenantId });
    return this.config.current.plans.find(({ id }) => id === plan);
  }
}
