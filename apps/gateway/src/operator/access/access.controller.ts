import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import { type Author, mintCredential } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { bodyError, futureInstant, refuseFields, trimmedName } from '../../http/account/body';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, queryCheck } from '../../http/validate';
import { OperatorTokenCreate, OperatorTokensQuery } from './access-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import type { Operator } from '../port/operator-authentication';
import { ByOperator, FromOperator, SecretGuard } from '../port/secret-guard';
import { requireId } from '../require-id';

const checkQuery = queryCheck(OperatorTokensQuery);
const checkBody = bodyCheck(OperatorTokenCreate, bodyError);

/** The named tokens of this API. A token is minted here and shown only in the answer that issues it. */
@Controller(`${OPERATOR_PREFIX}/operator-tokens`)
@UseGuards(SecretGuard)
export class AccessController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  list(@Query() query: unknown) {
    return this.services.request('auth.operators.list', checkQuery(query));
  }

  @Post()
  async create(@FromOperator() operator: Operator, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { name, scopes, expiresAt } = checkBody(trimmedName(readJsonObject(request)));
    const beyond = scopes.filter((scope) => operator.scopes !== 'all' && !operator.scopes.includes(scope));
    if (beyond.length > 0)
      throw new ApiError('insufficient_scope', `A token can only grant scopes that it has, not ${beyond.join(', ')}.`);
    const expires = futureInstant(expiresAt);
    const { value, hash, last4 } = mintCredential('operator');
    const wanted = { name, hash, last4, scopes, by, ...(expires !== null && { expiresAt: expires }) };
    const row = await this.services.request('auth.operators.create', wanted);
    return { data: { ...row, token: value }, note: 'Store this token now: it is shown only this once.' };
  }

  @Delete(':id')
  @HttpCode(204)
  async revoke(@Param('id') id: string, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    refuseFields(request);
    requireId('opr', id);
    await this.services.request('auth.operators.revoke', { id, by });
  }
}
