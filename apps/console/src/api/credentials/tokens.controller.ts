import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { type Author, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller } from '../../access/allow';
import { bodyOf, queryOf } from '../../http/body';
import type { IssuedToken, TokenList } from '../answers';
import { checkedName, exact, ExpiresAtField, futureInstant, NameField, pageOf, ScopesField } from '../fields';
import { requireId } from '../../http/require-id';

const readPage = queryOf(pageOf('tok'));
const readToken = bodyOf(
  Type.Object({ name: NameField, scopes: ScopesField, expiresAt: Type.Optional(ExpiresAtField) }, exact),
);

/** The management tokens of a tenant. */
@Controller('console/api/tenants/:tenantId/tokens')
export class TokensController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @AllowInTenant('tokens.read')
  list(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<TokenList> {
    return this.services.request('auth.tokens.list', { tenantId, ...readPage(query) });
  }

  /** The token exists in this process and in this one answer. Only its hash is sent on. */
  @Post()
  @AllowInTenant('tokens.write')
  async create(
    @Param('tenantId') tenantId: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<IssuedToken> {
    const { name, scopes, expiresAt } = readToken(request);
    const expires = futureInstant(expiresAt);
    const { value, hash, last4 } = mintCredential('token');
    const row = await this.services.request('auth.tokens.create', {
      by,
      tenantId,
      name: checkedName(name),
      scopes,
      hash,
      last4,
      ...(expires !== null && { expiresAt: expires }),
    });
    return { ...row, token: value };
  }

  @Delete(':id')
  @AllowInTenant('tokens.write')
  @HttpCode(204)
  async revoke(@Param('tenantId') tenantId: string, @Param('id') id: string, @ByCaller() by: Author): Promise<void> {
    requireId('tok', id);
    await this.services.request('auth.tokens.revoke', { tenantId, id, by });
  }
}
