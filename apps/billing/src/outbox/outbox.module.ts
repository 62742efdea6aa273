import { Module } from '@nestjs/common';
import { NewsOutbox } from './news-outbox';

@Module({ providers: [NewsOutbox], exports: [NewsOutbox] })
export class OutboxModule {}
