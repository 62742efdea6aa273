import { Module } from '@nestjs/common';
import { AccessController } from './access.controller';
import { AuditController } from './audit.controller';
import { OperatorInvitationsController } from './invitations.controller';

/** Who may operate: tokens and people. And what operators did. */
@Module({ controllers: [AccessController, OperatorInvitationsController, AuditController] })
export class AccessModule {}
