import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { AccountModule } from '../account/account.module';
import { InvitationsController } from './invitations.controller';
import { MembersController } from './members.controller';
import { PasswordLinksController } from './password-links.controller';
import { PeopleController } from './people.controller';

/** The people of one tenant, and of all tenants. */
@Module({
  imports: [AccessModule, AccountModule],
  controllers: [InvitationsController, MembersController, PasswordLinksController, PeopleController],
})
export class PeopleModule {}
