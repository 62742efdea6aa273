import { Module } from '@nestjs/common';
import { AcceptModule } from '../accept/accept.module';
import { BillingController } from './billing.controller';
import { CallRates } from './call-rates';
import { KeysController } from './keys.controller';
import { TokenUses } from './token-uses';
import { TokensController } from './tokens.controller';
import { UnknownRouteController } from './unknown-route.controller';
import { UsageController } from './usage.controller';

/**
 * The management API under `/_api/v1`, on the public port. Messages and CredentialStore come from global modules. The
 * parser of the port leaves each body as a Buffer, or undefined.
 */
@Module({
  imports: [AcceptModule],
  controllers: [KeysController, UsageController, BillingController, TokensController, UnknownRouteController],
  providers: [TokenUses, CallRates],
})
export class ManagementModule {}
