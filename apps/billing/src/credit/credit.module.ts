import { Module } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { whileRunning } from '@tollgate/runtime';
import { PostingModule } from '../post/posting.module';
import { MoneyOut } from '../refunds/money-out';
import { RepairModule } from '../repair/repair.module';
import { runTask } from '../run-task';
import { TopUps } from '../topups/top-ups';
import { BookedMoney } from './booked-money';
import { CreditController } from './credit.controller';

const GIVE_BACK_EVERY_MS = 5_000;

const giveBackAbandoned = whileRunning([MoneyOut, Outbox], (moneyOut, outbox) =>
  runTask('give back withdrawals that nobody booked', GIVE_BACK_EVERY_MS, async () => {
    if ((await moneyOut.giveBackAbandoned()) > 0) outbox.wake();
  }),
);

/** Money in and out. */
@Module({
  imports: [PostingModule, RepairModule],
  controllers: [CreditController],
  providers: [TopUps, MoneyOut, BookedMoney, giveBackAbandoned],
  exports: [BookedMoney],
})
export class CreditModule {}
