import { Module } from '@nestjs/common';
import { PostingModule } from '../consume/posting.module';
import { BalanceUpdateOutbox } from '../outbox/balance-update-outbox';
import { periodicTask } from '../periodic-task';
import { MoneyOut } from '../refunds/money-out';
import { RepairModule } from '../repair/repair.module';
import { TopUps } from '../topups/top-ups';
import { BookedMoney } from './booked-money';
import { CreditController } from './credit.controller';

const RELEASE_ABANDONED_EVERY_MS = 5_000;

const releaseAbandoned = periodicTask(
  'give back withdrawals that nobody booked',
  RELEASE_ABANDONED_EVERY_MS,
  [MoneyOut, BalanceUpdateOutbox],
  async (moneyOut: MoneyOut, outbox: BalanceUpdateOutbox) => {
    if ((await moneyOut.releaseAbandoned()) > 0) outbox.wake();
  },
);

/** Money in and out. */
@Module({
  imports: [PostingModule, RepairModule],
  controllers: [CreditController],
  providers: [TopUps, MoneyOut, BookedMoney, releaseAbandoned],
  exports: [BookedMoney],
})
export class CreditModule {}
