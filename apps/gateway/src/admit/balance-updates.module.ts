import { Module } from '@nestjs/common';
import { BalanceUpdateController } from './balance-update.controller';

/** A separate module, because a process without a gateway may do it. Needs an AdmissionStore. */
@Module({ controllers: [BalanceUpdateController] })
export class BalanceUpdatesModule {}
