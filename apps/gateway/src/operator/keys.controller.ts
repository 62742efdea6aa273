import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, UseGuards } from '@nestjs/common';
import { isId, type Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../http/api-error';
import { bodyError, futureInstant, refuseFields, trimmedName } from '../http/account/body';
import { revokeCredential } from '../http/account/revoke';
import { issueKey, KEY_NOTE, readKeyBody } from '../http/account/issue-key';
import { KeysQuery } from '../http/account/schemas';
import { inForce } from '../http/in-force';
import { readJsonObject } from '../http/json-body';
import { bodyCheck, queryCheck } from '../http/validate';
import { OPERATOR_PREFIX } from './prefix';
import { KeyUpdate } from './key-schemas';
import { ByOperator, SecretGuard } from './secret-guard';
import { TenantLookup } from './tenant-lookup';

const checkQuery = queryCheck(KeysQuery);
const checkUpdate = bodyCheck(KeyUpdate, bodyError);

/** The inference keys of a tenant. A key is minted here and shown only in the answer that issues it. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId/keys`)
@UseGuards(SecretGuard)
export class OperatorKeysController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
  ) {}

  @Get()
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    return this.services.request('auth.keys.list', { tenantId, ...page });
  }

  @Post()
  async create(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = readKeyBody(readJsonObject(request));
    const { row, key } = await issueKey(this.services, tenantId, wanted, by);
    return { data: { ...row, key }, note: KEY_NOTE };
  }

  /** Absent fields stay as they are. */
  @Patch(':id')
  async update(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    const { expiresAt, ...wanted } = checkUpdate(trimmedName(readJsonObject(request)));
    const expiry = expiresAt === undefined ? {} : { expiresAt: futureInstant(expiresAt) };
    if (!isId('ten', tenantId) || !isId('key', id)) throw new ApiError('not_found', 'No such key.');
    const change = this.services.request('auth.keys.update', { tenantId, id, by, ...wanted, ...expiry });
    return { data: await inForce(change, 'The key may still work as before. Repeat the change until it succeeds.') };
  }

  @Delete(':id')
  @HttpCode(204)
  async revoke(
    @Param('tenantId') tenantId: string,
    @Param('id') id: string,
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
  ) {
    refuseFields(request);
    if (!isId('ten', tenantId) || !isId('key', id)) throw new ApiError('not_found', 'No such key.');
    await revokeCredential(this.services, 'key', { tenantId, id, by });
  }
}
