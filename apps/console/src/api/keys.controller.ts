import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { type Author, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller, FromCaller, type Caller } from '../access/allow';
import { mayDo } from '../access/roles';
import { bodyOf, queryOf } from '../http/body';
import type { IssuedKey, KeyList, KeyRowWithBudget } from './answers';
import { rowOf } from './budget-rows';
import { checkedName, exact, ExpiresAtField, futureInstant, NameField, pageOf } from './fields';

const readPage = queryOf(pageOf('key'));
const readKey = bodyOf(
  Type.Object(
    {
      name: NameField,
      profile: Type.Optional(Type.String({ maxLength: 100 })),
      expiresAt: Type.Optional(ExpiresAtField),
    },
    exact,
  ),
);

/** The inference keys of a tenant. */
@Controller('console/api/tenants/:tenantId/keys')
export class KeysController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  @AllowInTenant('keys.read')
  async list(
    @Param('tenantId') tenantId: string,
    @FromCaller() { role }: Caller,
    @Query() query: unknown,
  ): Promise<KeyList> {
    const page = await this.services.request('auth.keys.list', { tenantId, ...readPage(query) });
    const { plan } = await this.services.request('auth.tenants.get', { tenantId });
    const profiles = this.config.current.plans.find(({ id }) => id === plan)?.profiles ?? [];
    const maySee = role !== null && mayDo(role, 'budgets.read');
    const data = page.data.map(async (key): Promise<KeyRowWithBudget> => {
      if (!maySee || key.status !== 'active') return { ...key, budget: null };
      const state = await this.services.request('billing.budget.get', { tenantId, keyId: key.id });
      const byDefault = profiles.find(({ id }) => id === key.profile)?.monthlyBudgetCents ?? null;
      const { budgetCents, spentNanos } = rowOf(state, byDefault);
      return { ...key, budget: budgetCents === null ? null : { budgetCents, spentNanos } };
    });
    return { ...page, data: await Promise.all(data) };
  }

  /** The key exists in this process and in this one answer. Only its hash is sent on. */
  @Post()
  @AllowInTenant('keys.write')
  async create(
    @Param('tenantId') tenantId: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<IssuedKey> {
    const { name, profile, expiresAt } = readKey(request);
    const expires = futureInstant(expiresAt);
    const { value, hash, last4 } = mintCredential('key');
    const row = await this.services.request('auth.keys.create', {
      by,
      tenantId,
      name: checkedName(name),
      hash,
      last4,
      ...(profile !== undefined && { profile }),
      ...(expires !== null && { expiresAt: expires }),
    });
    return { ...row, key: value };
  }

  @Delete(':id')
  @AllowInTenant('keys.write')
  @HttpCode(204)
  async revoke(@Param('tenantId') tenantId: string, @Param('id') id: string, @ByCaller() by: Author): Promise<void> {
    await this.services.request('auth.keys.revoke', { tenantId, id, by });
  }
}
