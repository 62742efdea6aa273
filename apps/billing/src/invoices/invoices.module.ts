import { Module } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { countClosed } from '../post/metrics';
import { PostingModule } from '../post/posting.module';
import { CreditModule } from '../credit/credit.module';
import { taskProvider } from '../task-provider';
import { InvoiceCloser } from './invoice-closer';
import { Invoices } from './invoices';
import { InvoicesController } from './invoices.controller';

const CLOSE_MONTHS_EVERY_MS = 60_000;

const closeMonths = taskProvider(
  'close months',
  CLOSE_MONTHS_EVERY_MS,
  [InvoiceCloser, Outbox],
  async (closer: InvoiceCloser, outbox: Outbox) => {
    const closed = await closer.closeDue();
    if (closed) countClosed(closed);
    if (closed && closed.invoices > 0) outbox.wake();
  },
);

@Module({
  imports: [PostingModule, CreditModule],
  controllers: [InvoicesController],
  providers: [Invoices, InvoiceCloser, closeMonths],
})
export class InvoicesModule {}
