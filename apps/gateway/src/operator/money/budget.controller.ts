import { Controller, Get, Param, Put, Query, Req, UseGuards } from '@nestjs/common';
import { inForce, type Author, type BudgetState, type RequestOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, type PlanConfig } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { bodyError } from '../../http/account/body';
import { KeysQuery } from '../../http/account/schemas';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { BudgetSet } from '../schemas';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { requireId } from '../require-id';

const checkQuery = queryCheck(KeysQuery);
const checkBody = bodyCheck(BudgetSet, bodyError);

/** Monthly budgets of a tenant and of its keys. A change is in force within a second. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId`)
@UseGuards(SecretGuard)
export class BudgetController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  @Get('budget')
  async show(@Param('tenantId') tenantId: string) {
    const byDefault = await this.defaultOfTenant(tenantId);
    return this.answer(await this.services.request('billing.budget.get', { tenantId, keyId: null }), byDefault);
  }

  @Put('budget')
  async set(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = readBudget(request);
    const byDefault = await this.defaultOfTenant(tenantId);
    return this.answer(await this.inForce({ tenantId, keyId: null, by, ...wanted }), byDefault);
  }

  /** The keys that have their own budget. */
  @Get('budgets')
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    const { data, nextCursor } = await this.services.request('billing.budget.keys', { tenantId, ...page });
    // Each key has its own budget, so the default of the configuration is not needed.
    return { data: data.map((state) => this.answer(state, null).data), nextCursor };
  }

  @Get('keys/:id/budget')
  async showKey(@Param('tenantId') tenantId: string, @Param('id') keyId: string) {
    const byDefault = await this.defaultOfKey(tenantId, keyId);
    return this.answer(await this.services.request('billing.budget.get', { tenantId, keyId }), byDefault);
  }

  @Put('keys/:id/budget')
  async setKey(
    @Param('tenantId') tenantId: string,
    @Param('id') keyId: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    const wanted = readBudget(request);
    const byDefault = await this.defaultOfKey(tenantId, keyId);
    return this.answer(await this.inForce({ tenantId, keyId, by, ...wanted }), byDefault);
  }

  private inForce(wanted: RequestOf<'billing.budget.set'>): Promise<BudgetState> {
    const message = 'The previous budget may still be in force. Set the budget again until it succeeds.';
    return inForce(this.services.request('billing.budget.set', wanted), message);
  }

  private async defaultOfTenant(tenantId: string): Promise<number | null> {
    return (await this.planOf(tenantId))?.monthlyBudgetCents ?? null;
  }

  private async defaultOfKey(tenantId: string, id: string): Promise<number | null> {
    const plan = await this.planOf(tenantId);
    requireId('key', id);
    const { profile } = await this.services.request('auth.keys.get', { tenantId, id });
    return plan?.profiles.find((candidate) => candidate.id === profile)?.monthlyBudgetCents ?? null;
  }

  /** Error: not_found (tenant). Undefined: the configuration no longer has the plan. */
  private async planOf(tenantId: string): Promise<PlanConfig | undefined> {
    const { plan } = await this.tenants.get(tenantId);
    return this.config.current.plans.find(({ id }) => id === plan);
  }

  private answer({ budgetCents, hasOwnThresholds, ...state }: BudgetState, byDefault: number | null) {
    const set = budgetCents === 'none' ? null : budgetCents;
    const monthlyBudgetCents = set === 'default' ? byDefault : set;
    const setBy = set === 'default' ? 'configuration' : 'operator';
    const thresholdsSetBy = hasOwnThresholds ? 'operator' : 'configuration';
    return { data: { monthlyBudgetCents, setBy, thresholdsSetBy, ...state, currency: this.config.current.currency } };
  }
}

function readBudget(request: FastifyRequest) {
  const { monthlyBudgetCents, thresholdsPercent } = checkBody(readJsonObject(request));
  const budgetCents = monthlyBudgetCents ?? ('none' as const);
  return { budgetCents, ...(thresholdsPercent !== undefined && { thresholdsPercent }) };
}
