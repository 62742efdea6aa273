import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { EventRanges } from './event-ranges';
import { MonthSpent } from './month-spent';
import { QueryController } from './query.controller';
import { RollUpAudit } from './roll-up-audit';
import { UsageQueries } from './usage-query';

const inject = [MeteringDataSource];

@Module({
  controllers: [QueryController],
  providers: [
    UsageQueries,
    EventRanges,
    // Made by a factory, because tests use smaller pages.
    { provide: MonthSpent, inject, useFactory: (dataSource: MeteringDataSource) => new MonthSpent(dataSource) },
    { provide: RollUpAudit, inject, useFactory: (dataSource: MeteringDataSource) => new RollUpAudit(dataSource) },
  ],
})
export class QueryModule {}
