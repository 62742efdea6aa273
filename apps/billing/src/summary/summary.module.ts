import { Module } from '@nestjs/common';
import { HeldSum } from './held-sum';
import { SummaryController } from './summary.controller';

@Module({ controllers: [SummaryController], providers: [HeldSum] })
export class SummaryModule {}
