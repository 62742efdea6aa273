import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { DEFAULT_USAGE_KEPT_MONTHS, Retention } from './retention';

const retention = {
  provide: Retention,
  inject: [MeteringDataSource, METERING_OPTIONS],
  useFactory: (dataSource: MeteringDataSource, { usageKeptMonths = DEFAULT_USAGE_KEPT_MONTHS }: MeteringOptions) =>
    usageKeptMonths === null ? null : new Retention(dataSource, usageKeptMonths),
};

/** Closes, proves and drops old months of events. */
@Module({ providers: [retention] })
export class RetainModule {}
