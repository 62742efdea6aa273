import { Module } from '@nestjs/common';
import { AdmissionStore } from '@tollgate/admission';
import { HeldSum } from './held-sum';
import { SummaryController } from './summary.controller';

const heldSum = {
  provide: HeldSum,
  inject: [AdmissionStore],
  useFactory: (admission: AdmissionStore) => new HeldSum(admission),
};

@Module({ controllers: [SummaryController], providers: [heldSum] })
export class SummaryModule {}
