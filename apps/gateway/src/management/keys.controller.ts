import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { isId, RequestError, type Author, type KeyRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { managementError } from './errors';
import { refuseFields } from '../http/account/body';
import { revokeCredential } from '../http/account/revoke';
import { issueKey, KEY_NOTE, readKeyBody } from '../http/account/issue-key';
import { ManagementApi } from './management-api';
import { MANAGEMENT_PREFIX } from './prefix';
import { KeysQuery } from '../http/account/schemas';
import { ByCaller, type Caller, FromCaller, NeedsScope, TokenGuard } from './token-guard';
import { readJsonObject } from '../http/json-body';
import { queryCheck } from '../http/validate';

const checkQuery = queryCheck(KeysQuery);

/**
 * `/keys`: list, issue and revoke inference keys. A key is minted here and leaves this process only in the answer that
 * issues it.
 */
@Controller(`${MANAGEMENT_PREFIX}/keys`)
@ManagementApi()
@UseGuards(TokenGuard)
export class KeysController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  @NeedsScope('keys:read')
  async list(@FromCaller() { tenantId }: Caller, @Query() query: unknown) {
    const page = await this.services.request('auth.keys.list', { tenantId, ...checkQuery(query) });
    return { data: page.data.map(toKey), nextCursor: page.nextCursor };
  }

  @Post()
  @NeedsScope('keys:write')
  async create(@FromCaller() { tenantId }: Caller, @ByCaller() by: Author, @Req() request: FastifyRequest) {
    const wanted = readKeyBody(readJsonObject(request));
    const { row, key } = await issueKey(this.services, tenantId, wanted, by).catch((error: unknown) => {
      // The end of a tenant revokes its tokens. This process learns of that within a second.
      if (error instanceof RequestError && error.code === 'tenant_closed') throw managementError('token_revoked');
      throw error;
    });
    return { data: { id: row.id, name: row.name, key, last4: row.last4 }, note: KEY_NOTE };
  }

  @Delete(':id')
  @HttpCode(204)
  @NeedsScope('keys:write')
  async revoke(
    @FromCaller() { tenantId }: Caller,
    @ByCaller() by: Author,
    @Param('id') id: string,
    @Req() request: FastifyRequest,
  ) {
    refuseFields(request);
    // No key has an id of another form, so auth is not asked.
    if (!isId('key', id)) throw managementError('not_found', 'No such key.');
    await revokeCredential(this.services, 'key', { tenantId, id, by });
  }
}

/** Exactly the documented fields, whatever else the row has. */
function toKey({ id, name, last4, status, createdAt, expiresAt }: KeyRow) {
  return { id, name, last4, status, createdAt, expiresAt };
}
