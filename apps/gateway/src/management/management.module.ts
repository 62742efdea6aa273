import { Module } from '@nestjs/common';
import { BillingController } from './billing.controller';
import { CallRates } from './call-rates';
import { KeysController } from './keys.controller';
import { TokenUses } from './token-uses';
import { TokensController } from './tokens.controller';
import { UnknownRouteController } from './unknown-route.controller';
import { UsageController } from './usage.controller';

/**
 * The management API under `/_api/v1`, for the public port. Takes Messages and CredentialStore from a global module,
 * and each request's body as the port's parser leaves it: a Buffer, or nothing.
 */
@Module({
  controllers: [KeysController, UsageController, BillingController, TokensController, UnknownRouteController],
  providers: [TokenUses, CallRates],
})
export class ManagementModule {}
