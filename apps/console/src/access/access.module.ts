import { Module } from '@nestjs/common';
import { Mailer } from '../http/mailer';
import { SignInModule } from '../sign-in/sign-in.module';
import { AccessGuard } from './access.guard';
import { Changes } from './changes';
import { Erasures } from './erasures';
import { ExpiredRows } from './expired-rows';
import { Invitations } from './invitations';
import { KnownTenants } from './known-tenants';
import { Members } from './members';
import { OperatorLinks } from './operator-links';
import { OperatorLinksController } from './operator-links.controller';
import { Operators } from './operators';
import { OvertakenCalls } from './overtaken-calls';
import { People } from './people';
import { ProviderRoles } from './provider-roles';
import { Recoveries } from './recoveries';
import { TenantPeople } from './tenant-people';

/** What a person may do: roles, and the links that give them. */
@Module({
  imports: [SignInModule],
  controllers: [OperatorLinksController],
  providers: [
    AccessGuard,
    Changes,
    Erasures,
    ExpiredRows,
    Invitations,
    KnownTenants,
    Mailer,
    Members,
    OperatorLinks,
    Operators,
    OvertakenCalls,
    People,
    ProviderRoles,
    Recoveries,
    TenantPeople,
  ],
  exports: [
    AccessGuard,
    Changes,
    Invitations,
    Mailer,
    Members,
    OvertakenCalls,
    People,
    ProviderRoles,
    Recoveries,
    TenantPeople,
  ],
})
export class AccessModule {}
