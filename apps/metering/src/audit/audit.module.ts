import { Module } from '@nestjs/common';
import { MeteringDataSource } from '../database';
import { EventRanges } from './event-ranges';
import { ReconcileController } from './reconcile.controller';
import { RollUpAudit } from './roll-up-audit';

/** What `reconcile` in billing compares with the books. */
@Module({
  controllers: [ReconcileController],
  providers: [
    EventRanges,
    {
      provide: RollUpAudit,
      inject: [MeteringDataSource],
      // Made by a factory, because tests use smaller parts.
      useFactory: (dataSource: MeteringDataSource) => new RollUpAudit(dataSource),
    },
  ],
})
export class AuditModule {}
