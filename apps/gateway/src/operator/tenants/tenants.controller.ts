import { Controller, Get, HttpCode, Param, Patch, Post, Query, Req, UseGuards } from '@nestjs/common';
import { inForce, type Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { bodyError, refuseFields, trimmedName } from '../../http/account/body';
import { ApiError } from '../../http/api-error';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { TenantRepairBody } from './repair-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { TenantCreate, TenantsQuery, TenantUpdate } from './tenant-schemas';
import { requireId } from '../require-id';

const checkQuery = queryCheck(TenantsQuery);
const checkBody = bodyCheck(TenantCreate, bodyError);
const checkUpdate = bodyCheck(TenantUpdate, bodyError);
const checkRepair = bodyCheck(TenantRepairBody, bodyError);

/** Messages for a change of status that is not confirmed to be in force. */
const MAY_STILL_BE = {
  suspended: 'New requests of the tenant may still be admitted. Repeat the suspension until it succeeds.',
  active: 'New requests of the tenant may still be refused. Repeat the resumption until it succeeds.',
} as const;

@Controller(`${OPERATOR_PREFIX}/tenants`)
@UseGuards(SecretGuard)
export class TenantsController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
  ) {}

  @Get()
  list(@Query() query: unknown) {
    return this.services.request('auth.tenants.list', checkQuery(query));
  }

  @Post()
  async create(@ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = checkBody(trimmedName(readJsonObject(request)));
    return { data: await this.services.request('auth.tenants.create', { ...wanted, by }) };
  }

  @Get(':tenantId')
  async get(@Param('tenantId') tenantId: string) {
    return { data: await this.tenants.get(tenantId) };
  }

  /** Absent fields stay as they are. */
  @Patch(':tenantId')
  async update(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = checkUpdate(trimmedName(readJsonObject(request)));
    if (wanted.profiles !== undefined && wanted.plan === undefined)
      throw new ApiError('invalid_plan', 'profiles is allowed only together with plan.');
    requireId('ten', tenantId);
    const change = this.services.request('auth.tenants.update', { tenantId, ...wanted, by });
    return {
      data: await inForce(change, 'The former limits may still be in force. Repeat the change until it succeeds.'),
    };
  }

  /** All its keys and tokens are revoked, and it is suspended, for good. */
  @Post(':tenantId/close')
  @HttpCode(200)
  async close(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    refuseFields(request);
    requireId('ten', tenantId);
    const change = this.services.request('auth.tenants.close', { tenantId, by });
    return { data: await inForce(change, 'New requests may still be admitted. Repeat the call until it succeeds.') };
  }

  @Post(':tenantId/erase')
  @HttpCode(200)
  async erase(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    refuseFields(request);
    requireId('ten', tenantId);
    const change = this.services.request('auth.tenants.erase', { tenantId, by });
    return { data: await inForce(change, 'The audit log may still have names. Repeat the erasure until it succeeds.') };
  }

  /** New requests are refused with 402 within a second. Running requests continue to their end. */
  @Post(':tenantId/suspend')
  @HttpCode(200)
  suspend(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    refuseFields(request);
    return this.setStatus(tenantId, 'suspended', by);
  }

  @Post(':tenantId/resume')
  @HttpCode(200)
  resume(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    refuseFields(request);
    return this.setStatus(tenantId, 'active', by);
  }

  /** Rebuilds the state of the tenant in the admission store from the books. */
  @Post(':tenantId/repair')
  @HttpCode(200)
  async repair(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { dryRun = false } = checkRepair(readJsonObject(request));
    requireId('ten', tenantId);
    return { data: await this.services.request('billing.tenants.repair', { tenantId, dryRun, by }) };
  }

  private async setStatus(tenantId: string, status: keyof typeof MAY_STILL_BE, by: Author) {
    requireId('ten', tenantId);
    const change = this.services.request('auth.tenants.setStatus', { tenantId, status, by });
    return { data: await inForce(change, MAY_STILL_BE[status]) };
  }
}
