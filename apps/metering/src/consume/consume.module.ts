import { Module } from '@nestjs/common';
import { OutboxModule } from '@tollgate/messaging/nest';
import { whileRunning } from '@tollgate/runtime';
import { MeteringDataSource } from '../database';
import { METERING_OPTIONS, type MeteringOptions } from '../options';
import { PriceVersions } from '../record/price-versions';
import { RecordModule } from '../record/record.module';
import { openRejected } from '../record/rejected';
import { openEvents } from './metrics';
import { UnpricedUsage } from './unpriced-usage';
import { UsageConsumer } from './usage-consumer';
import { UsageController } from './usage.controller';

const usageConsumer = {
  provide: UsageConsumer,
  inject: [MeteringDataSource, METERING_OPTIONS, PriceVersions],
  useFactory: (dataSource: MeteringDataSource, { prices }: MeteringOptions, versions: PriceVersions) =>
    new UsageConsumer(dataSource, prices ?? versions),
};

const openEventsGauge = whileRunning([MeteringDataSource], (dataSource) =>
  openEvents.from(() => openRejected(dataSource)),
);

@Module({
  imports: [RecordModule, OutboxModule.of('metering', MeteringDataSource)],
  controllers: [UsageController],
  providers: [usageConsumer, UnpricedUsage, openEventsGauge],
})
export class ConsumeModule {}
