import { Module } from '@nestjs/common';
import { PostingModule } from '../post/posting.module';
import { Budgets } from './budgets';
import { BudgetsController } from './budgets.controller';

@Module({ imports: [PostingModule], controllers: [BudgetsController], providers: [Budgets] })
export class BudgetsModule {}
