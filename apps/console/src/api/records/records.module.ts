import { Module } from '@nestjs/common';
import { AccessModule } from '../../access/access.module';
import { AuditController } from './audit.controller';
import { BudgetsController } from './budgets.controller';
import { MoneyController } from './money.controller';
import { RequestsController } from './requests.controller';

/** What the services recorded of a tenant: credit, budgets, requests and changes. */
@Module({
  imports: [AccessModule],
  controllers: [MoneyController, BudgetsController, AuditController, RequestsController],
})
export class RecordsModule {}
