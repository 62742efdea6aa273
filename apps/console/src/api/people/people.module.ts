import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { AccountModule } from '../account/account.module';
import { InvitationsController } from './invitations.controller';
import { MemberRecoveriesController } from './member-recoveries.controller';
import { MembersController } from './members.controller';
import { PeopleController } from './people.controller';
import { PasswordLinkTries } from '../tries';

/** The people of a tenant, and those of all of them. */
@Module({
  imports: [AccessModule, AccountModule],
  controllers: [InvitationsController, MembersController, MemberRecoveriesController, PeopleController],
  providers: [PasswordLinkTries],
})
export class PeopleModule {}
