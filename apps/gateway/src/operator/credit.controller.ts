import { Controller, Get, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { NANOS_PER_CENT } from '@tollgate/contracts';
import { Messages } from '@tollgate/messaging';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { bodyError } from '../management/body';
import { BillingQuery } from '../management/schemas';
import { bodyCheck, queryCheck, readJsonObject } from '../management/validate';
import { OPERATOR_PREFIX } from './routes';
import { CreditAdd } from './schemas';
import { SecretGuard } from './secret-guard';
import { TenantLookup } from './tenant-lookup';

const checkQuery = queryCheck(BillingQuery);
const checkBody = bodyCheck(CreditAdd, bodyError);

/** A tenant's credit. A top-up with a `ref` may be sent again: it is entered once. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId/credit`)
@UseGuards(SecretGuard)
export class CreditController {
  constructor(
    private readonly messages: Messages,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  async show(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    const [{ nextCursor, ...data }, { spendableNanos }] = await Promise.all([
      this.messages.request('billing.summary', { tenantId, ...page }),
      this.messages.request('billing.credit.spendable', { tenantId }),
    ]);
    const spendableCents = spendableNanos === null ? null : Number(BigInt(spendableNanos) / NANOS_PER_CENT);
    return { data: { ...data, spendableCents, currency: this.config.current.currency }, nextCursor };
  }

  @Post()
  async add(@Param('tenantId') tenantId: string, @Req() request: FastifyRequest) {
    const { amountCents, source = 'manual', ref = randomUUID() } = checkBody(readJsonObject(request));
    const added = await this.messages.request('billing.credit.add', { tenantId, amountCents, source, ref });
    return { data: { ...added, currency: this.config.current.currency } };
  }
}
