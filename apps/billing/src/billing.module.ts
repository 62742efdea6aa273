import { Module, type DynamicModule } from '@nestjs/common';
import { AuditModule } from './audit/audit.module';
import { BudgetsModule } from './budgets/budgets.module';
import { ChargesModule } from './gather/charges.module';
import { CreditModule } from './credit/credit.module';
import { BillingDataSource, openBillingDatabase } from './database';
import { withDefaults } from './default-options';
import { InvoicesModule } from './invoices/invoices.module';
import { BooksCurrency } from './ledger/books-currency';
import { BooksCurrencyController } from './ledger/books-currency.controller';
import { ChargedRequestsModule } from './charged-requests/charged-requests.module';
import { BILLING_OPTIONS, type BillingOptions } from './options';
import { ReconcileModule } from './reconcile/reconcile.module';
import { RepairModule } from './repair/repair.module';
import { SummaryModule } from './summary/summary.module';
import { TenantStatusModule } from './tenants/tenant-status.module';

/** The providers that all modules of billing share: the options and the database. */
@Module({})
class BillingGlobals {}

/** Needs MessagesModule and AdmissionStore from global modules, and the migrated schema. */
@Module({
  imports: [
    ChargesModule,
    CreditModule,
    InvoicesModule,
    BudgetsModule,
    TenantStatusModule,
    SummaryModule,
    ChargedRequestsModule,
    ReconcileModule,
    RepairModule,
    AuditModule,
  ],
  controllers: [BooksCurrencyController],
  providers: [BooksCurrency],
})
export class BillingModule {
  static register(options: BillingOptions): DynamicModule {
    const providers = [
      { provide: BILLING_OPTIONS, useValue: withDefaults(options) },
      { provide: BillingDataSource, useFactory: () => openBillingDatabase(options.databaseUrl) },
    ];
    const exports = [BILLING_OPTIONS, BillingDataSource];
    return { module: BillingModule, imports: [{ module: BillingGlobals, global: true, providers, exports }] };
  }
}
