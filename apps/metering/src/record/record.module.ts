import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { PartitionIndexes } from './partition-indexes';
import { Partitions } from './partitions';
import { PriceVersions } from './price-versions';
import { UsageDays } from './usage-days';

/** Null if a test gives the prices. */
const priceVersions = {
  provide: PriceVersions,
  inject: [MeteringDataSource, METERING_OPTIONS],
  useFactory: (dataSource: MeteringDataSource, { prices, config }: MeteringOptions) =>
    prices ? null : new PriceVersions(dataSource, config),
};

/** Stores events, and the prices at which they may have been served. */
@Module({ providers: [Partitions, PartitionIndexes, UsageDays, priceVersions], exports: [PriceVersions] })
export class RecordModule {}
