import { Module } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { OutboxModule } from '../outbox/outbox.module';
import { AfterCommit } from './after-commit';
import { countPostings } from './metrics';
import { Poster } from './poster';
import { PostingGauges } from './posting-gauges';
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

/**
 * Every module that changes the books imports this one. So the last whole cents are posted after those modules have
 * stopped.
 */
@Module({
  imports: [OutboxModule],
  providers: [Poster, PostingTraces, postingLoop, AfterCommit, PostingGauges],
  exports: [AfterCommit, OutboxModule, PostingTraces],
})
export class PostingModule {}
