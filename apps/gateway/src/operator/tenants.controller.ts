import { Controller, Get, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import type { FastifyRequest } from 'fastify';
import { bodyError, trimmedName } from '../management/body';
import { bodyCheck, queryCheck, readJsonObject } from '../management/validate';
import { OPERATOR_PREFIX } from './routes';
import { TenantCreate, TenantsQuery } from './schemas';
import { SecretGuard } from './secret-guard';
import { TenantLookup } from './tenant-lookup';

const checkQuery = queryCheck(TenantsQuery);
const checkBody = bodyCheck(TenantCreate, bodyError);

@Controller(`${OPERATOR_PREFIX}/tenants`)
@UseGuards(SecretGuard)
export class TenantsController {
  constructor(
    private readonly messages: Messages,
    private readonly tenants: TenantLookup,
  ) {}

  @Get()
  list(@Query() query: unknown) {
    return this.messages.request('auth.tenants.list', checkQuery(query));
  }

  @Post()
  async create(@Req() request: FastifyRequest) {
    const { name, plan } = checkBody(trimmedName(readJsonObject(request)));
    return { data: await this.messages.request('auth.tenants.create', { name, ...(plan !== undefined && { plan }) }) };
  }

  @Get(':tenantId')
  async get(@Param('tenantId') tenantId: string) {
    return { data: await this.tenants.get(tenantId) };
  }
}
