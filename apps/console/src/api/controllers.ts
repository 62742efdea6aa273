import type { Type } from '@nestjs/common';
import { AccountController } from './account.controller';
import { AuditController } from './audit.controller';
import { BudgetsController } from './budgets.controller';
import { InvitationsController } from './invitations.controller';
import { KeysController } from './keys.controller';
import { LiveController } from './live.controller';
import { MeController } from './me.controller';
import { MembersController } from './members.controller';
import { MoneyController } from './money.controller';
import { OperatorController } from './operator.controller';
import { PeopleController } from './people.controller';
import { PlaygroundController } from './playground.controller';
import { RecoveryController } from './recovery.controller';
import { RequestsController } from './requests.controller';
import { TokensController } from './tokens.controller';
import { UnknownRouteController } from './unknown-route.controller';
import { UsageController } from './usage.controller';

/** Every controller of the backend. The one for unknown routes comes last. */
export const API_CONTROLLERS: readonly Type[] = [
  MeController,
  AccountController,
  InvitationsController,
  RecoveryController,
  KeysController,
  TokensController,
  UsageController,
  MoneyController,
  BudgetsController,
  AuditController,
  RequestsController,
  LiveController,
  PlaygroundController,
  MembersController,
  OperatorController,
  PeopleController,
  UnknownRouteController,
];
