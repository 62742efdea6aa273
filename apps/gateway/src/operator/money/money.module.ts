import { Module } from '@nestjs/common';
import { BudgetController } from './budget.controller';
import { CreditController } from './credit.controller';
import { InvoicesController } from './invoices.controller';
import { JournalController } from './journal.controller';
import { ReconcileController } from './reconcile.controller';

/** Credit, budgets and invoices, and the proofs of the books. */
@Module({
  controllers: [CreditController, BudgetController, InvoicesController, JournalController, ReconcileController],
})
export class MoneyModule {}
