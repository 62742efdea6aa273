import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { Partitions } from './partitions';
import { PriceVersions } from './price-versions';

/** Null where a test gives the prices. */
const priceVersions = {
  provide: PriceVersions,
  inject: [MeteringDataSource, METERING_OPTIONS],
  useFactory: (dataSource: MeteringDataSource, { prices, config }: MeteringOptions) =>
    prices ? null : new PriceVersions(dataSource, config),
};

/** Where events are kept, and the prices that they may have been served at. */
@Module({ providers: [Partitions, priceVersions], exports: [PriceVersions] })
export class RecordModule {}
