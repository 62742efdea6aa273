import { Module } from '@nestjs/common';
import { ChargeGatherer } from './charge-gatherer';
import { ChargesController } from './charges.controller';
import { PostingModule } from '../post/posting.module';

@Module({ imports: [PostingModule], controllers: [ChargesController], providers: [ChargeGatherer] })
export class ChargesModule {}
