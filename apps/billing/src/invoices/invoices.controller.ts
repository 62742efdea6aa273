import { Controller } from '@nestjs/common';
import type { IssuedInvoice, Page, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { AfterCommit } from '../post/after-commit';
import { BookedMoney } from '../credit/booked-money';
import { InvoiceCloser } from './invoice-closer';
import { Invoices } from './invoices';

@Controller()
export class InvoicesController {
  constructor(
    private readonly invoices: Invoices,
    private readonly closer: InvoiceCloser,
    private readonly money: BookedMoney,
    private readonly after: AfterCommit,
  ) {}

  @MessagePattern('billing.invoices.list')
  list(request: RequestOf<'billing.invoices.list'>): Promise<Page<IssuedInvoice>> {
    return this.invoices.list(request);
  }

  @MessagePattern('billing.invoices.get')
  get(request: RequestOf<'billing.invoices.get'>): Promise<IssuedInvoice> {
    return this.invoices.get(request);
  }

  @MessagePattern('billing.invoices.close')
  async close(request: RequestOf<'billing.invoices.close'>): Promise<ReplyOf<'billing.invoices.close'>> {
    const closed = await this.closer.close(request);
    this.after.committed();
    return closed;
  }

  @MessagePattern('billing.invoices.void')
  void(request: RequestOf<'billing.invoices.void'>): Promise<ReplyOf<'billing.invoices.void'>> {
    return this.money.inForce(this.invoices.void(request));
  }
}
