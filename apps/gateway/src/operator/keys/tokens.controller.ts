import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { type Author, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { bodyError, futureInstant, refuseFields, trimmedName } from '../../http/account/body';
import { revokeCredential } from '../../http/account/revoke';
import { TokensQuery } from '../../http/account/schemas';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { TokenCreate } from '../schemas';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { TenantLookup } from '../tenant-lookup';
import { requireId } from '../require-id';

const checkQuery = queryCheck(TokensQuery);
const checkBody = bodyCheck(TokenCreate, bodyError);

/** The management tokens of a tenant. A token is minted here and shown only in the answer that issues it. */
@Controller(`${OPERATOR_PREFIX}/tenants/:tenantId/tokens`)
@UseGuards(SecretGuard)
export class OperatorTokensController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
  ) {}

  @Get()
  async list(@Param('tenantId') tenantId: string, @Query() query: unknown) {
    const page = checkQuery(query);
    await this.tenants.get(tenantId);
    return this.services.request('auth.tokens.list', { tenantId, ...page });
  }

  @Post()
  async create(@Param('tenantId') tenantId: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { name, scopes, expiresAt } = checkBody(trimmedName(readJsonObject(request)));
    const expires = futureInstant(expiresAt);
    requireId('ten', tenantId);
    const { value, hash, last4 } = mintCredential('token');
    const row = await this.services.request('auth.tokens.create', {
      tenantId,
      name,
      hash,
      last4,
      scopes,
      by,
      ...(expires !== null && { expiresAt: expires }),
    });
    return { data: { ...row, token: value }, note: 'Store this token now: it is shown only this once.' };
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
    requireId('ten', tenantId);
    requireId('tok', id);
    await revokeCredential(this.services, 'token', { tenantId, id, by });
  }
}
