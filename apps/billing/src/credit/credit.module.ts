import { Module } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { PostingModule } from '../post/posting.module';
import { taskProvider } from '../task-provider';
import { MoneyOut } from '../refunds/money-out';
import { RepairModule } from '../repair/repair.module';
import { TopUps } from '../topups/top-ups';
import { BookedMoney } from './booked-money';
import { CreditController } from './credit.controller';

const GIVE_BACK_EVERY_MS = 5_000;

const giveBackAbandoned = taskProvider(
  'give back withdrawals that nobody booked',
  GIVE_BACK_EVERY_MS,
  [MoneyOut, Outbox],
  async (moneyOut: MoneyOut, outbox: Outbox) => {
    if ((await moneyOut.giveBackAbandoned()) > 0) outbox.wake();
  },
);

/** Money in and out. */
@Module({
  imports: [PostingModule, RepairModule],
  controllers: [CreditController],
  providers: [TopUps, MoneyOut, BookedMoney, giveBackAbandoned],
  exports: [BookedMoney],
})
export class CreditModule {}
