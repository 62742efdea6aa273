import { Controller } from '@nestjs/common';
import type { BudgetState, Page, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { AfterCommit } from '../post/after-commit';
import { Budgets } from './budgets';

@Controller()
export class BudgetsController {
  constructor(
    private readonly budgets: Budgets,
    private readonly after: AfterCommit,
  ) {}

  @MessagePattern('billing.budget.set')
  async set(request: RequestOf<'billing.budget.set'>): Promise<BudgetState> {
    try {
      return await this.budgets.set(request);
    } finally {
      this.after.committed();
    }
  }

  @MessagePattern('billing.budget.get')
  get(request: RequestOf<'billing.budget.get'>): Promise<BudgetState> {
    return this.budgets.get(request);
  }

  @MessagePattern('billing.budget.of')
  of(request: RequestOf<'billing.budget.of'>): Promise<ReplyOf<'billing.budget.of'>> {
    return this.budgets.of(request);
  }

  @MessagePattern('billing.budget.keys')
  keys(request: RequestOf<'billing.budget.keys'>): Promise<Page<BudgetState>> {
    return this.budgets.keys(request);
  }
}
