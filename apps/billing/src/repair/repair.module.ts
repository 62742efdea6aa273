import { AdmissionStore } from '@tollgate/admission';
import { Module } from '@nestjs/common';
import { BillingDataSource } from '../database';
import { SERVICE_OPTIONS, type ServiceOptions } from '../options';
import { PoisonRounds } from './poison-rounds';
import { PoisonWatch } from './poison-watch';
import { RepairController } from './repair.controller';
import { TenantRepairs } from './tenant-repairs';

/** Null if the watch is off. */
const poisonWatch = {
  provide: PoisonWatch,
  inject: [BillingDataSource, AdmissionStore, TenantRepairs, SERVICE_OPTIONS],
  useFactory: (
    dataSource: BillingDataSource,
    admission: AdmissionStore,
    repairs: TenantRepairs,
    { watchEveryMs }: ServiceOptions,
  ) => (watchEveryMs === null ? null : new PoisonWatch(dataSource, admission, repairs)),
};

@Module({
  controllers: [RepairController],
  providers: [TenantRepairs, poisonWatch, PoisonRounds],
  exports: [PoisonWatch],
})
export class RepairModule {}
