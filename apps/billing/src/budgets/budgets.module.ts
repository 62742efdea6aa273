import { Module } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { PostingModule } from '../post/posting.module';
import { Budgets } from './budgets';
import { BudgetsController } from './budgets.controller';
import { HeldByKey } from './held-by-key';

/** Made by a factory, because tests have a clock of their own. */
const heldByKey = {
  provide: HeldByKey,
  inject: [AdmissionStore],
  useFactory: (admission: AdmissionStore) => new HeldByKey(admission),
};

@Module({ imports: [PostingModule], controllers: [BudgetsController], providers: [Budgets, heldByKey] })
export class BudgetsModule {}
