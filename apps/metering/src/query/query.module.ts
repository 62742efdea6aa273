import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { MonthSpent } from './month-spent';
import { QueryController } from './query.controller';
import { RequestsList } from './requests-list';
import { UsageExport } from './usage-export';
import { UsageQueries } from './usage-query';
import { UsageReads } from './usage-reads';
import { UsageSeriesQueries } from './usage-series';

const inject = [MeteringDataSource];

@Module({
  controllers: [QueryController],
  providers: [
    UsageQueries,
    UsageSeriesQueries,
    UsageExport,
    // Made by a factory, because tests use smaller pages and shorter deadlines.
    { provide: UsageReads, inject, useFactory: (dataSource: MeteringDataSource) => new UsageReads(dataSource) },
    { provide: MonthSpent, inject, useFactory: (dataSource: MeteringDataSource) => new MonthSpent(dataSource) },
    { provide: RequestsList, inject, useFactory: (dataSource: MeteringDataSource) => new RequestsList(dataSource) },
  ],
})
export class QueryModule {}
