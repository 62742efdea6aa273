import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { PublishModule } from '../publish/publish.module';
import { PriceVersions } from '../record/price-versions';
import { RecordModule } from '../record/record.module';
import { OpenEventsGauge } from './open-events-gauge';
import { UnpricedUsage } from './unpriced-usage';
import { UsageConsumer } from './usage-consumer';
import { UsageController } from './usage.controller';

const usageConsumer = {
  provide: UsageConsumer,
  inject: [MeteringDataSource, METERING_OPTIONS, PriceVersions],
  useFactory: (dataSource: MeteringDataSource, { prices }: MeteringOptions, versions: PriceVersions) =>
    new UsageConsumer(dataSource, prices ?? versions),
};

@Module({
  imports: [RecordModule, PublishModule],
  controllers: [UsageController],
  providers: [usageConsumer, UnpricedUsage, OpenEventsGauge],
})
export class ConsumeModule {}
