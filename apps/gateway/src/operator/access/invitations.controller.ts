import { Controller, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { type Author, mintInvitationSecret, OPERATOR_SCOPES } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { bodyError } from '../../http/account/body';
import { ApiError } from '../../http/api-error';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck } from '../../http/validate';
import { OperatorInvitationCreate, OperatorRemoval, PasswordLinkCreate } from './access-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import type { Operator } from '../port/operator-authentication';
import { ByOperator, FromOperator, SecretGuard } from '../port/secret-guard';

const checkInvitation = bodyCheck(OperatorInvitationCreate, bodyError);
const checkLink = bodyCheck(PasswordLinkCreate, bodyError);
const checkRemoval = bodyCheck(OperatorRemoval, bodyError);

/**
 * Makes operators of the console by links, and removes them. Creates links for new passwords. The secret of a link is
 * minted here; the console gets only its hash.
 */
@Controller(OPERATOR_PREFIX)
@UseGuards(SecretGuard)
export class OperatorInvitationsController {
  constructor(private readonly services: ServiceClient) {}

  @Post('operator-invitations')
  async invite(@FromOperator() { scopes }: Operator, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const wanted = checkInvitation(readJsonObject(request));
    requireAll(scopes);
    const { secret, hash } = mintInvitationSecret();
    const { id, url, expiresAt } = await this.services.request('console.operators.invite', { ...wanted, hash, by });
    return {
      data: { id, link: `${url}#${secret}`, expiresAt },
      note: 'Open this link now: it is shown only this once.',
    };
  }

  @Post('password-links')
  async recover(@FromOperator() { scopes }: Operator, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { email } = checkLink(readJsonObject(request));
    requireAll(scopes);
    const { secret, hash } = mintInvitationSecret();
    const { url, expiresAt } = await this.services.request('console.people.recover', { email, hash, by });
    return {
      data: { link: `${url}#${secret}`, expiresAt },
      note: 'Give this link to the person now: it is shown only this once.',
    };
  }

  @Post('console-operators/remove')
  @HttpCode(204)
  async remove(@FromOperator() { scopes }: Operator, @ByOperator() by: Author, @Req() request: FastifyRequest) {
    const { email } = checkRemoval(readJsonObject(request));
    requireAll(scopes);
    await this.services.request('console.operators.remove', { email, by });
  }
}

function requireAll(scopes: Operator['scopes']): void {
  if (scopes !== 'all' && !OPERATOR_SCOPES.every((scope) => scopes.includes(scope)))
    throw new ApiError('insufficient_scope', 'This endpoint needs the operator secret, or a token with all scopes.');
}
