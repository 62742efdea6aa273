import { Controller, Get, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { NANOS_PER_CENT, type Author, type ReplyOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { bodyError } from '../../http/account/body';
import { BillingQuery } from '../../http/account/schemas';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { CreditAdd, CreditAdjust, CreditRefund } from '../schemas';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { requireId } from '../require-id';

const checkQuery = queryCheck(BillingQuery);
const checkAdd = bodyCheck(CreditAdd, bodyError);
const checkRefund = bodyCheck(CreditRefund, bodyError);
const checkAdjust = bodyCheck(CreditAdjust, bodyError);

/** The credit of a tenant. Each movement has a `ref`, so a repeat is entered only once. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId/credit`)
@UseGuards(SecretGuard)
export class CreditController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  async show(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    const [{ nextCursor, ...data }, { spendableNanos }] = await Promise.all([
      this.services.request('billing.summary', { tenantId, ...page }),
      this.services.request('billing.credit.spendable', { tenantId }),
    ]);
    const spendableCents = spendableNanos === null ? null : Number(BigInt(spendableNanos) / NANOS_PER_CENT);
    return { data: { ...data, spendableCents, currency: this.config.current.currency }, nextCursor };
  }

  @Post()
  async add(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { amountCents, source = 'manual', ref } = checkAdd(readJsonObject(request));
    requireId('ten', tenantId);
    return this.entered(await this.services.request('billing.credit.add', { tenantId, amountCents, source, ref, by }));
  }

  @Post('refund')
  async refund(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { amountCents, source = 'manual', ref, reason } = checkRefund(readJsonObject(request));
    requireId('ten', tenantId);
    const wanted = { tenantId, amountCents, source, ref, by, ...(reason !== undefined && { reason }) };
    return this.entered(await this.services.request('billing.credit.refund', wanted));
  }

  @Post('adjust')
  async adjust(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { amountCents, source = 'manual', ref, reason, allowDebt = false } = checkAdjust(readJsonObject(request));
    requireId('ten', tenantId);
    const wanted = { tenantId, amountCents, source, ref, reason, allowDebt, by };
    return this.entered(await this.services.request('billing.credit.adjust', wanted));
  }

  private entered(reply: ReplyOf<'billing.credit.add'>) {
    return { data: { ...reply, currency: this.config.current.currency } };
  }
}
