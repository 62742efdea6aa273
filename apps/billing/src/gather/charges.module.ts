import { Module } from '@nestjs/common';
import { ChargeGatherer } from './charge-gatherer';
import { ChargesController } from './charges.controller';
import { OutboxModule } from '../outbox/outbox.module';
import { PostingModule } from '../post/posting.module';

@Module({ imports: [OutboxModule, PostingModule], controllers: [ChargesController], providers: [ChargeGatherer] })
export class ChargesModule {}
