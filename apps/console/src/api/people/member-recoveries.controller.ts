import { Controller, Param, Post, Req } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { Members } from '../../access/members';
import { Recoveries } from '../../access/recoveries';
import { ConsoleError } from '../../http/errors';
import type { RecoveryCreated } from '../answers';
import { Proofs, readProof } from '../account/proofs';
import { requireGrant } from './members.controller';
import { requireOther } from './people.controller';
import { PasswordLinkTries } from '../tries';

/** Links by which people of a tenant set new passwords. */
@Controller('console/api/tenants/:tenantId/members')
export class MemberRecoveriesController {
  constructor(
    private readonly members: Members,
    private readonly recoveries: Recoveries,
    private readonly proofs: Proofs,
    private readonly linkTries: PasswordLinkTries,
  ) {}

  /**
   * Makes a link for a new password. An owner must not take over the account of a person in other tenants, so that
   * person must belong to this tenant only. An operator may make a link for anybody. Both prove who they are.
   */
  @Post(':userId/recovery')
  @AllowInTenant('members.recover')
  async recover(
    @Param('tenantId') tenantId: string,
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<RecoveryCreated> {
    this.linkTries.take(caller.userId);
    const { password } = readProof(request);
    const present = await this.members.roleOf(userId, tenantId);
    if (present === null) throw new ConsoleError('not_found');
    requireGrant(caller, present);
    requireOther(caller, userId, 'Change your own password under Account.');
    await this.proofs.require(caller, password, request);
    return this.recoveries.create(by, userId, caller.isOperator ? null : tenantId);
  }
}
