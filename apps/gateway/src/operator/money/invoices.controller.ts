import { Controller, Get, HttpCode, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { bodyError } from '../../http/account/body';
import { ApiError } from '../../http/api-error';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { InvoiceClose, InvoicesQuery, InvoiceVoid } from '../schemas';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';

/** Enough for many months of many tenants. A repeat closes the months that are still open. */
const CLOSE_DEADLINE_MS = 60_000;

const checkQuery = queryCheck(InvoicesQuery);
const checkClose = bodyCheck(InvoiceClose, bodyError);
const checkVoid = bodyCheck(InvoiceVoid, bodyError);

/** Issued invoices. The open invoices of a tenant are shown with its credit. */
@Controller(`${OPERATOR_PREFIX}/invoices`)
@UseGuards(SecretGuard)
export class InvoicesController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  async list(@Query() query: unknown) {
    const wanted = checkQuery(query);
    if (wanted.tenantId !== undefined) await this.tenants.get(wanted.tenantId);
    const page = await this.services.request('billing.invoices.list', wanted);
    return { ...page, currency: this.config.current.currency };
  }

  /** Closes a past month and the months before it now. */
  @Post('close')
  @HttpCode(200)
  async close(@ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = checkClose(readJsonObject(request));
    if (wanted.tenantId !== undefined) await this.tenants.get(wanted.tenantId);
    return {
      data: await this.services.request('billing.invoices.close', { ...wanted, by }, { deadlineMs: CLOSE_DEADLINE_MS }),
    };
  }

  @Post(':accountingNumber/void')
  @HttpCode(200)
  async void(@Param('accountingNumber') number: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { reason } = checkVoid(readJsonObject(request));
    if (!/^[1-9]\d{0,15}$/.test(number)) throw new ApiError('not_found', 'No such invoice.');
    const done = await this.services.request('billing.invoices.void', { accountingNumber: Number(number), reason, by });
    return { data: { ...done, currency: this.config.current.currency } };
  }
}
