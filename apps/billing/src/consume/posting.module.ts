import { Module } from '@nestjs/common';
import { NewsOutbox } from '../outbox/news-outbox';
import { OutboxModule } from '../outbox/outbox.module';
import { AfterCommit } from './after-commit';
import { countPostings } from './metrics';
import { Poster } from './poster';
import { PostingGauges } from './posting-gauges';
import { PostingLoop } from './posting-loop';

const postingLoop = {
  provide: PostingLoop,
  inject: [Poster, NewsOutbox],
  useFactory: (poster: Poster, outbox: NewsOutbox) =>
    new PostingLoop(poster, (tenants) => {
      countPostings(tenants);
      outbox.wake();
    }),
};

/** What every module imports that changes the books: its last whole cents are posted after those have stopped. */
@Module({
  imports: [OutboxModule],
  providers: [Poster, postingLoop, AfterCommit, PostingGauges],
  exports: [AfterCommit, OutboxModule],
})
export class PostingModule {}
