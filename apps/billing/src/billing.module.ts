import { Module, type DynamicModule, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { BudgetsModule } from './budgets/budgets.module';
import { ChargesModule } from './consume/charges.module';
import { CreditModule } from './credit/credit.module';
import { BillingDataSource, openBillingDatabase } from './database';
import { withDefaults } from './default-options';
import { InvoicesModule } from './invoices/invoices.module';
import { BooksCurrency } from './ledger/books-currency';
import { ReceiptsModule } from './receipts/receipts.module';
import { InjectOptions, SERVICE_OPTIONS, type BillingOptions, type ServiceOptions } from './options';
import { ReconcileModule } from './reconcile/reconcile.module';
import { RepairModule } from './repair/repair.module';
import { SummaryModule } from './summary/summary.module';
import { TenantStatusModule } from './tenants/tenant-status.module';

/**
 * The providers that all modules of billing share: the options and the database. The database closes after all other
 * modules.
 */
@Module({})
class BillingGlobals implements OnApplicationShutdown {
  constructor(private readonly dataSource: BillingDataSource) {}

  async onApplicationShutdown(): Promise<void> {
    await this.dataSource.destroy();
  }
}

/** Needs MessagesModule and AdmissionStore from global modules, and the migrated schema. */
@Module({
  imports: [
    ChargesModule,
    CreditModule,
    InvoicesModule,
    BudgetsModule,
    TenantStatusModule,
    SummaryModule,
    ReceiptsModule,
    ReconcileModule,
    RepairModule,
  ],
})
export class BillingModule implements OnModuleInit {
  constructor(
    private readonly dataSource: BillingDataSource,
    @InjectOptions() private readonly options: ServiceOptions,
  ) {}

  static register(options: BillingOptions): DynamicModule {
    const providers = [
      { provide: SERVICE_OPTIONS, useValue: withDefaults(options) },
      { provide: BillingDataSource, useFactory: () => openBillingDatabase(options.databaseUrl) },
    ];
    const exports = [SERVICE_OPTIONS, BillingDataSource];
    return { module: BillingModule, imports: [{ module: BillingGlobals, global: true, providers, exports }] };
  }

  /** Rejects with StartError if the books are in another currency. */
  async onModuleInit(): Promise<void> {
    const { currency, config } = this.options;
    await new BooksCurrency(this.dataSource).start(currency(), config);
  }
}
