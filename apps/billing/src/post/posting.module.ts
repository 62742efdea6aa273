import { Module } from '@nestjs/common';
import { Outbox, OutboxModule } from '@tollgate/messaging/nest';
import { whileRunning } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import { overdueSeconds, uncoveredSeconds } from '../ledger/books-store';
import { AfterCommit } from './after-commit';
import { countPostings, postingOverdue, uncovered } from './metrics';
import { Poster } from './poster';
import { PostingLoop } from './posting-loop';
import { PostingTraces } from './posting-traces';

const postingLoop = {
  provide: PostingLoop,
  inject: [Poster, Outbox],
  useFactory: (poster: Poster, outbox: Outbox) =>
    new PostingLoop(poster, (tenants) => {
      countPostings(tenants);
      outbox.wake();
    }),
};

const overdueGauge = whileRunning([BillingDataSource], ({ manager }) =>
  postingOverdue.from(() => overdueSeconds(manager)),
);

const uncoveredGauge = whileRunning([BillingDataSource], ({ manager }) =>
  uncovered.from(() => uncoveredSeconds(manager)),
);

/**
 * Every module that changes the books imports this one. So the last whole cents are posted after those modules have
 * stopped.
 */
@Module({
  imports: [OutboxModule.of('billing', BillingDataSource)],
  providers: [Poster, PostingTraces, postingLoop, AfterCommit, overdueGauge, uncoveredGauge],
  exports: [AfterCommit, OutboxModule, PostingTraces],
})
export class PostingModule {}
