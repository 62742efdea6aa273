import { Controller } from '@nestjs/common';
import { UnavailableError, type ReplyOf, type RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { MoneyOut } from '../refunds/money-out';
import { PoisonWatch } from '../repair/poison-watch';
import { TopUps } from '../topups/top-ups';
import { BookedMoney } from './booked-money';

@Controller()
export class CreditController {
  constructor(
    private readonly topUps: TopUps,
    private readonly moneyOut: MoneyOut,
    private readonly money: BookedMoney,
    private readonly watch: PoisonWatch,
  ) {}

  @MessagePattern('billing.credit.add')
  add(request: RequestOf<'billing.credit.add'>): Promise<ReplyOf<'billing.credit.add'>> {
    return this.money.inForce(this.topUps.add(request));
  }

  @MessagePattern('billing.credit.refund')
  refund(request: RequestOf<'billing.credit.refund'>): Promise<ReplyOf<'billing.credit.refund'>> {
    return this.money.inForce(this.debited(request.tenantId, this.moneyOut.refund(request)));
  }

  @MessagePattern('billing.credit.adjust')
  adjust(request: RequestOf<'billing.credit.adjust'>): Promise<ReplyOf<'billing.credit.adjust'>> {
    return this.money.inForce(this.debited(request.tenantId, this.moneyOut.adjust(request)));
  }

  /**
   * An admission store that is ahead of the books refuses the debit. The watch checks it, so that the next attempt
   * succeeds.
   */
  private async debited<T>(tenantId: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof UnavailableError) this.watch.look(tenantId);
      throw error;
    }
  }
}
