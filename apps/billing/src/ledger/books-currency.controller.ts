import { Controller } from '@nestjs/common';
import type { ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { BooksCurrency } from './books-currency';

@Controller()
export class BooksCurrencyController {
  constructor(private readonly books: BooksCurrency) {}

  @MessagePattern('billing.config.check')
  async check({ currency }: RequestOf<'billing.config.check'>): Promise<ReplyOf<'billing.config.check'>> {
    const problem = await this.books.problemWith(currency);
    return { problems: problem === null ? [] : [problem] };
  }
}
