import { AdmissionStore } from '@tollgate/admission';
import { Module } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { PostingModule } from '../consume/posting.module';
import { BillingDataSource } from '../database';
import { SERVICE_OPTIONS, type ServiceOptions } from '../options';
import { Budgets } from './budgets';
import { BudgetsController } from './budgets.controller';

const budgets = {
  provide: Budgets,
  inject: [BillingDataSource, ServiceClient, AdmissionStore, SERVICE_OPTIONS],
  useFactory: (
    dataSource: BillingDataSource,
    services: ServiceClient,
    admission: AdmissionStore,
    options: ServiceOptions,
  ) => new Budgets(dataSource, services, admission, { ...options, now: () => options.now().getTime() }),
};

@Module({ imports: [PostingModule], controllers: [BudgetsController], providers: [budgets] })
export class BudgetsModule {}
