import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import { Type } from '@sinclair/typebox';
import { type Author, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller } from '../access/allow';
import { bodyOf, queryOf } from '../http/body';
import type { IssuedKey, KeyList } from './answers';
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
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @AllowInTenant('keys.read')
  list(@Param('tenantId') tenantId: string, @Query() query: unknown): Promise<KeyList> {
    return this.services.request('auth.keys.list', { tenantId, ...readPage(query) });
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
