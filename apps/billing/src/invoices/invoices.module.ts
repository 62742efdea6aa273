import { Module } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { whileRunning } from '@tollgate/runtime';
import { countClosed } from '../post/metrics';
import { PostingModule } from '../post/posting.module';
import { CreditModule } from '../credit/credit.module';
import { runTask } from '../run-task';
import { InvoiceCloser } from './invoice-closer';
import { Invoices } from './invoices';
import { InvoicesController } from './invoices.controller';

const CLOSE_MONTHS_EVERY_MS = 60_000;

const closeMonths = whileRunning([InvoiceCloser, Outbox], (closer, outbox) =>
  runTask('close months', CLOSE_MONTHS_EVERY_MS, async () => {
    const closed = await closer.closeDue();
    if (closed) countClosed(closed);
    if (closed && closed.invoices > 0) outbox.wake();
  }),
);

@Module({
  imports: [PostingModule, CreditModule],
  controllers: [InvoicesController],
  providers: [Invoices, InvoiceCloser, closeMonths],
})
export class InvoicesModule {}
