import { Module, type DynamicModule } from '@nestjs/common';
import { AuditModule } from './audit/audit.module';
import { BackendsModule } from './backends/backends.module';
import { ConsumeModule } from './consume/consume.module';
import { MeteringDataSource, openMeteringDatabase } from './database';
import { METERING_OPTIONS, type MeteringOptions } from './options';
import { QueryModule } from './query/query.module';
import { RefusalsModule } from './refusals/refusals.module';
import { RetainModule } from './retain/retain.module';
import { SweepModule } from './sweep/sweep.module';

/** The providers that all modules of metering share: the options and the database. */
@Module({})
class MeteringGlobals {}

/** Needs MessagesModule and AdmissionStore from global modules, and the migrated schema. */
@Module({
  imports: [ConsumeModule, QueryModule, AuditModule, BackendsModule, RefusalsModule, RetainModule, SweepModule],
})
export class MeteringModule {
  static register(options: MeteringOptions): DynamicModule {
    const providers = [
      { provide: METERING_OPTIONS, useValue: options },
      { provide: MeteringDataSource, useFactory: () => openMeteringDatabase(options.databaseUrl) },
    ];
    const exports = [METERING_OPTIONS, MeteringDataSource];
    return { module: MeteringModule, imports: [{ module: MeteringGlobals, global: true, providers, exports }] };
  }
}
