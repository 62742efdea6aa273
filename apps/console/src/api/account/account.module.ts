import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { AuthController } from './auth.controller';
import { SignInModule } from '../../sign-in/sign-in.module';
import { AccountController } from './account.controller';
import { ApiAddressesModule } from '../api-addresses.module';
import { MeController } from './me.controller';
import { OwnSignIns } from './own-sign-ins';
import { PasswordTries } from './password-tries';
import { Proofs } from './proofs';
import { RecoveryController } from './recovery.controller';

/** A person and their own account. */
@Module({
  imports: [AccessModule, ApiAddressesModule, SignInModule],
  controllers: [AuthController, MeController, AccountController, RecoveryController],
  providers: [OwnSignIns, PasswordTries, Proofs],
  exports: [Proofs],
})
export class AccountModule {}
