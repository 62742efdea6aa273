import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { EventRanges } from './event-ranges';
import { MonthSpent } from './month-spent';
import { QueryController } from './query.controller';
import { ReconcileController } from './reconcile.controller';
import { RequestsList } from './requests-list';
import { RollUpAudit } from './roll-up-audit';
import { UsageExport } from './usage-export';
import { UsageQueries } from './usage-query';
import { UsageReads } from './usage-reads';
import { UsageSeriesQueries } from './usage-series';

const inject = [MeteringDataSource];

@Module({
  controllers: [QueryController, ReconcileController],
  providers: [
    UsageQueries,
    UsageSeriesQueries,
    UsageExport,
    EventRanges,
    // Made by a factory, because tests use smaller pages and shorter deadlines.
    { provide: UsageReads, inject, useFactory: (dataSource: MeteringDataSource) => new UsageReads(dataSource) },
    { provide: MonthSpent, inject, useFactory: (dataSource: MeteringDataSource) => new MonthSpent(dataSource) },
    { provide: RequestsList, inject, useFactory: (dataSource: MeteringDataSource) => new RequestsList(dataSource) },
    { provide: RollUpAudit, inject, useFactory: (dataSource: MeteringDataSource) => new RollUpAudit(dataSource) },
  ],
})
export class QueryModule {}
