import { Controller, Param, Post, Req } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import { AllowInTenant, AllowOperator, ByCaller, FromCaller, type Caller } from '../../access/allow';
import { Members } from '../../access/members';
import { Recoveries } from '../../access/recoveries';
import { ConsoleError } from '../../http/errors';
import type { RecoveryCreated } from '../answers';
import { Proofs, readProof } from '../account/proofs';
import { requireGrant } from './members.controller';
import { requireOther } from './people.controller';
import { Tries } from '../tries';

const OWN_PASSWORD = 'Change your own password under Account.';

/** Links by which other people set new passwords. Whoever makes one proves who they are. */
@Controller('console/api')
export class PasswordLinksController {
  private readonly tries = new Tries();

  constructor(
    private readonly members: Members,
    private readonly recoveries: Recoveries,
    private readonly proofs: Proofs,
  ) {}

  /**
   * An owner must not take over the account of a person in other tenants, so that person must belong to this tenant
   * only. An operator may create a link for anybody.
   */
  @Post('tenants/:tenantId/members/:userId/recovery')
  @AllowInTenant('members.recover')
  async forMember(
    @Param('tenantId') tenantId: string,
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<RecoveryCreated> {
    this.tries.take(caller.userId);
    const { password } = readProof(request);
    const present = await this.members.roleOf(userId, tenantId);
    if (present === null) throw new ConsoleError('not_found');
    requireGrant(caller, present);
    requireOther(caller, userId, OWN_PASSWORD);
    await this.proofs.require(caller, password, request);
    return this.recoveries.create(by, userId, caller.isOperator ? null : tenantId);
  }

  @Post('operator/people/:userId/recovery')
  @AllowOperator('people.write')
  async forPerson(
    @Param('userId') userId: string,
    @FromCaller() caller: Caller,
    @ByCaller() by: Author,
    @Req() request: FastifyRequest,
  ): Promise<RecoveryCreated> {
    this.tries.take(caller.userId);
    const { password } = readProof(request);
    requireOther(caller, userId, OWN_PASSWORD);
    await this.proofs.require(caller, password, request);
    return this.recoveries.create(by, userId, null);
  }
}
