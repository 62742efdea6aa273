import { Controller, Get, Query, UseGuards } from '@nestjs/common';
import type { TokenRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ManagementApi } from './management-api';
import { MANAGEMENT_PREFIX } from './prefix';
import { TokensQuery } from '../http/account/schemas';
import { type Caller, FromCaller, NeedsScope, TokenGuard } from './token-guard';
import { queryCheck } from '../http/validate';

const checkQuery = queryCheck(TokensQuery);

/** `/tokens`: the tenant's management tokens, including the calling one. */
@Controller(`${MANAGEMENT_PREFIX}/tokens`)
@ManagementApi()
@UseGuards(TokenGuard)
export class TokensController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @NeedsScope('tokens:read')
  async list(@FromCaller() { tenantId }: Caller, @Query() query: unknown) {
    const page = await this.services.request('auth.tokens.list', { tenantId, ...checkQuery(query) });
    return { data: page.data.map(toToken), nextCursor: page.nextCursor };
  }
}

/** Exactly the documented fields, whatever else the row has. */
function toToken(row: TokenRow): TokenRow {
  const { id, name, last4, scopes, createdAt, lastUsedAt, expiresAt, revokedAt } = row;
  return { id, name, last4, scopes, createdAt, lastUsedAt, expiresAt, revokedAt };
}
